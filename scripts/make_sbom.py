"""Writes the bill of materials of a release as CycloneDX JSON: make_sbom.py VERSION FILE.

What is ours, what is linked or inlined into it, in which version, and under which licence.
"""

import json
import pathlib
import sys

from portable_components import components


def bill(version):
    own = f"pkg:pypi/ait-llm@{version}"
    parts = [
        {
            "type": "library",
            "bom-ref": each.url,
            "name": each.name,
            "version": each.version,
            "purl": each.url,
            "licenses": [{"expression": each.licence}],
        }
        for each in components()
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "ait-llm",
                "version": version,
                "purl": own,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": parts,
        "dependencies": [{"ref": own, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


if __name__ == "__main__":
    version, file = sys.argv[1:]
    pathlib.Path(file).write_text(json.dumps(bill(version), indent=2) + "\n", encoding="utf-8")
