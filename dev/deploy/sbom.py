"""Checks that an SBOM is valid and names the components that people look for.

  sbom.py FILE
"""

import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import json

text = open(sys.argv[1]).read()
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
if wrong:
    sys.exit(f"the SBOM is not valid CycloneDX 1.6: {wrong}")
bom = json.loads(text)
names = {component["name"] for component in bom["components"]}
inside = {part["name"] for component in bom["components"] for part in component.get("components", [])}
missing = {"librdkafka", "RocksDB", "jemalloc", "zstd", "lz4", "zlib", "openssl", "glibc", "rdkafka", "rocksdb"} - names
missing |= {"snappy-c", "cJSON"} - inside
if missing:
    sys.exit(f"the SBOM lacks {sorted(missing)}")
references = [bom["metadata"]["component"]["bom-ref"]] + [component["bom-ref"] for component in bom["components"]]
dangling = {on for one in bom["dependencies"] for on in [one["ref"], *one.get("dependsOn", [])]} - set(references)
if dangling or len(references) != len(set(references)):
    sys.exit(f"references are dangling or ambiguous: {sorted(dangling)}")
unlicensed = [c["name"] for c in bom["components"] if c["purl"].startswith("pkg:cargo") and not c.get("licenses")]
if unlicensed:
    sys.exit(f"components without a licence: {unlicensed}")
print(f"image: {len(names)} crates and libraries in its SBOM, {len(inside)} more bundled inside those")
