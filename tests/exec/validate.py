"""Validates a SARIF file and a JUnit file against the published schemas.

usage: validate.py SCHEMAS FILE.sarif FILE.xml

SCHEMAS is a folder with sarif-2.1.0.json and junit-10.xsd. Prints what is wrong
and exits with 1, or with 0 if both files are valid.
"""

import json
import sys
from pathlib import Path

import jsonschema
from lxml import etree


def sarif_errors(schema, path):
    validator = jsonschema.validators.validator_for(schema)(schema)
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    return [str(error) for error in validator.iter_errors(document)]


def junit_errors(schema, path):
    validator = etree.XMLSchema(etree.parse(str(schema)))
    validator.validate(etree.parse(path))
    return [str(error) for error in validator.error_log]


def main():
    folder, sarif, junit = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    schema = json.loads((folder / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    errors = sarif_errors(schema, sarif) + junit_errors(folder / "junit-10.xsd", junit)
    print(*errors, sep="\n")
    return 1 if errors else 0


sys.exit(main())
