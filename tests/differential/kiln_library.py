"""kiln_library.py -- calls the operations of libkiln.so from Python.

The structs and enumerators come from the public headers themselves, so this file
has no list of operations, descs or members. A call passes the size of its desc, as
kiln.h asks of other languages ("Versions").
"""
import ctypes
import re
from pathlib import Path

import numpy

SCALARS = {
    "char": ctypes.c_char,
    "bool": ctypes.c_bool, "int": ctypes.c_int, "unsigned": ctypes.c_uint,
    "double": ctypes.c_double, "float": ctypes.c_float,
    "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
    "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
    "size_t": ctypes.c_size_t, "CUdeviceptr": ctypes.c_uint64,
}

TYPES = {"i1": "KILN_I8", "u1": "KILN_U8", "i2": "KILN_I16", "u2": "KILN_U16",
         "i4": "KILN_I32", "u4": "KILN_U32", "i8": "KILN_I64", "u8": "KILN_U64",
         "f2": "KILN_F16", "f4": "KILN_F32", "f8": "KILN_F64",
         "c8": "KILN_C64", "c16": "KILN_C128"}

GUARD = 256          # bytes before and after each array
GUARD_BYTE = 0xA5
POISON = 0x5A        # contents of outputs before the call


class Failure(AssertionError):
    """A call that failed, or a result that differs."""


# ---- Headers ---------------------------------------------------------------

class Headers:
    """The enumerators, structs and operations that include/kiln/*.h declare."""

    def __init__(self, folder):
        self.values, self.structs, self.enums, self.operations = {}, {}, set(), {}
        texts = [re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
                 for path in sorted(Path(folder, "kiln").glob("*.h"))]
        for text in texts:
            self._read_enums(text)
            self._read_operations(text)
        bodies = {}
        for text in texts:
            for name, body in re.findall(
                    r"typedef struct (\w+) \{(.*?)\n\} \1;", text, re.S):
                bodies[name] = body
        for name in [*self.operations.values(), "kiln_error", "kiln_param",
                     "kiln_runtime_opts"]:
            self._make(name, bodies)

    def _read_enums(self, text):
        for body, name in re.findall(r"enum\s*\w*\s*\{([^}]*)\}\s*(\w*);", text):
            if name:
                self.enums.add(name)
            at = 0
            for entry in filter(None, (e.strip() for e in body.split(","))):
                word, _, value = (p.strip() for p in entry.partition("="))
                if value:
                    try:
                        at = int(eval(value, {"__builtins__": {}}, self.values))
                    except (NameError, SyntaxError):
                        continue
                if re.fullmatch(r"\w+", word):
                    self.values[word] = at
                at += 1

    def _read_operations(self, text):
        for body in re.findall(
                r"#define KILN__\w+_OPERATIONS\(X\)((?:.*\\\n)*.*)\n", text):
            self.operations.update(re.findall(r"X\((\w+),\s*(\w+)", body))

    def _type(self, word, bodies):
        if word in self.enums:
            return ctypes.c_int
        if word in SCALARS:
            return SCALARS[word]
        return self._make(word, bodies)

    def _make(self, name, bodies):
        if name in self.structs or name not in bodies:
            return self.structs.get(name, ctypes.c_void_p)
        fields = []
        for line in filter(None, (m.strip() for m in bodies[name].split(";"))):
            if "(" in line:  # a pointer to a function
                fields.append((re.search(r"\(\*\s*(\w+)\)", line)[1],
                               ctypes.c_void_p))
                continue
            base, rest = re.fullmatch(
                r"(?:const\s+)?(?:struct\s+)?(\w+)\s*(.*)", line, re.S).groups()
            for item in rest.split(","):
                fields.append(self._field(base, item, bodies))
        self.structs[name] = type(name, (ctypes.Structure,),
                                  {"_fields_": fields})
        return self.structs[name]

    def _field(self, base, item, bodies):
        member, length = re.search(r"(\w+)\s*(?:\[(\w+)\])?\s*$", item).groups()
        if "*" in item:
            kind = ctypes.c_char_p if base == "char" else ctypes.c_void_p
        else:
            kind = self._type(base, bodies)
        if length:
            kind *= int(self.values.get(length, length))
        return member, kind


# ---- The device ------------------------------------------------------------

class Array:
    """An array in device memory, between guard zones."""

    def __init__(self, device, dtype, n, shift, data):
        self.device, self.dtype, self.n = device, numpy.dtype(dtype), n
        self.before = GUARD + shift * self.dtype.itemsize
        self.bytes = n * self.dtype.itemsize
        self.block = ctypes.c_uint64()
        whole = self.before + self.bytes + GUARD
        image = numpy.full(whole, GUARD_BYTE, "u1")
        image[self.before:self.before + self.bytes] = (
            POISON if data is None else data.view("u1"))
        device.check("kiln_memory_alloc", ctypes.byref(self.block),
                     device.handle, ctypes.c_size_t(whole))
        device.check("kiln_copy_to_device", device.handle, self.block,
                     image.ctypes.data_as(ctypes.c_void_p),
                     ctypes.c_size_t(whole))
        self.address = self.block.value + self.before

    def read(self):
        """Returns the elements, and fails if a guard zone was written."""
        whole = self.before + self.bytes + GUARD
        image = numpy.empty(whole, "u1")
        self.device.check("kiln_copy_to_host", self.device.handle,
                          image.ctypes.data_as(ctypes.c_void_p), self.block,
                          ctypes.c_size_t(whole))
        inside = image[self.before:self.before + self.bytes].copy()
        image[self.before:self.before + self.bytes] = GUARD_BYTE
        if (image != GUARD_BYTE).any():
            at = int(numpy.argmax(image != GUARD_BYTE)) - self.before
            raise Failure(f"guard byte {at} was written")
        return inside.view(self.dtype)

    def free(self):
        self.device.check("kiln_memory_free", self.device.handle, self.block)


class Device:
    """A device with a stream, and the arrays of the present call."""

    def __init__(self, library, include, driver=None):
        self.headers = Headers(include)
        self.lib = ctypes.CDLL(library)
        self.lib.kiln_last_error.restype = ctypes.POINTER(
            self.headers.structs["kiln_error"])
        self.runtime, self.handle, self.stream = (ctypes.c_void_p()
                                                  for _ in range(3))
        self.arrays, self.kept = [], []
        options = self.new("kiln_runtime_opts")
        if driver:
            options.driver_path = driver.encode()
        self.check("kiln_runtime_create_sized", ctypes.byref(self.runtime),
                   ctypes.byref(options),
                   ctypes.c_size_t(ctypes.sizeof(options)))
        self.check("kiln_device_open_sized", ctypes.byref(self.handle),
                   self.runtime, 0, None, ctypes.c_size_t(0))
        self.check("kiln_stream_create_sized", ctypes.byref(self.stream),
                   self.handle, None, ctypes.c_size_t(0))

    def check(self, function, *arguments):
        status = getattr(self.lib, function)(*arguments)
        if status != 0:
            text = self.lib.kiln_last_error().contents.message
            text = text.decode() if isinstance(text, bytes) else str(text)
            raise Failure(f"{function} returned {status}: {text}")

    def new(self, struct, **members):
        made = self.headers.structs[struct]()
        self.fill(made, members)
        return made

    def fill(self, struct, members):
        kinds = dict(struct._fields_)
        for name, value in members.items():
            setattr(struct, name, self.converted(kinds[name],
                                                 getattr(struct, name), value))

    def converted(self, kind, present, value):
        """Returns a value of a member in the form that ctypes takes."""
        if isinstance(value, Array):
            present.data = value.address
            present.type = self.type_of(value.dtype)
            return present
        if isinstance(value, dict):
            self.fill(present, value)
            return present
        if isinstance(value, numpy.ndarray):
            return value.ctypes.data
        if issubclass(kind, ctypes.Array):
            for i, one in enumerate(value):
                present[i] = self.converted(kind._type_, present[i], one)
            return present
        if isinstance(value, str):
            return (self.headers.values[value] if kind is ctypes.c_int
                    else value.encode())
        return value

    def type_of(self, dtype):
        dtype = numpy.dtype(dtype)
        return self.headers.values[TYPES[f"{dtype.kind}{dtype.itemsize}"]]

    def array(self, data, shift=0):
        """Copies a NumPy array to the device."""
        data = numpy.ascontiguousarray(data).reshape(-1)
        self.arrays.append(Array(self, data.dtype, data.size, shift, data))
        return self.arrays[-1]

    def empty(self, dtype, n, shift=0):
        self.arrays.append(Array(self, dtype, n, shift, None))
        return self.arrays[-1]

    def call(self, operation, **members):
        """Runs an operation and waits for its results."""
        desc = self.new(self.headers.operations[operation], **members)
        self.check(f"{operation}_sized", self.stream, ctypes.byref(desc), None,
                   ctypes.c_size_t(ctypes.sizeof(desc)))
        self.check("kiln_stream_synchronize", self.stream)

    def pointer(self, struct):
        """Returns the address of a struct, which lives until release()."""
        self.kept.append(struct)
        return ctypes.addressof(struct)

    def release(self):
        for array in self.arrays:
            array.free()
        self.arrays, self.kept = [], []
