"""Compares the manifests for Strimzi with what the program needs.

  strimzi.py PROGRAM SETTINGS     every KafkaTopic is what `samestory topics` prints with these settings, and the KafkaUser has the
                                  rights of docs/security.md, neither more nor fewer (a broker test runs the program with those)
  strimzi.py write PROGRAM SETTINGS     writes strimzi-topics.yaml
"""

import re
import subprocess
import sys
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "helm/samestory/examples"
OURS = {"cluster": "news"}
HEAD = """\
# The topics, as `samestory topics` prints them for strimzi-values.yaml; dev/test-deploy compares the two. Only samestory depends on
# the settings of `samestory.*`; `articles.raw` belongs to your crawlers.
"""


def fail(message):
    sys.exit(f"strimzi: {message}")


def wanted(program, settings):
    """Topic -> partitions, replicas and settings, by the program."""
    printed = subprocess.run([program, "--config", settings, "topics"], check=True, capture_output=True, text=True).stdout
    topics = {}
    for line in printed.splitlines():
        name, partitions, _, replicas, _, *config = line.split()
        topics[name] = (int(partitions), int(replicas), dict(one.split("=", 1) for one in config))
    return topics


def manifest(name, partitions, replicas, config):
    # Quoted, because Kubernetes stores a number of this size as a float.
    settings = "".join(f'    {key}: "{value}"\n' for key, value in config.items())
    return (f"---\napiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaTopic\nmetadata:\n  name: {name}\n"
            f"  labels: {{ strimzi.io/cluster: {OURS['cluster']} }}\nspec:\n  partitions: {partitions}\n  replicas: {replicas}\n"
            f"  config:\n{settings}")


def load(name):
    return [document for document in YAML(typ="safe").load_all((EXAMPLES / name).read_text()) if document]


def documented():
    """Resource, name -> operations, by docs/security.md."""
    rights = {}
    for line in (ROOT / "docs/security.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 4 and "`" in cells[2] and cells[1] in ("topic", "group", "transactional id"):
            for name in re.findall(r"`([^`]+)`", cells[2]):
                pattern = "prefix" if "(prefix)" in cells[2] else "literal"
                rights[cells[1].replace("transactional id", "transactionalId"), name, pattern] = set(cells[3].split(", "))
    return rights


def main():
    arguments = sys.argv[1:]
    writes = arguments[0] == "write"
    topics = wanted(*arguments[-2:])
    if writes:
        (EXAMPLES / "strimzi-topics.yaml").write_text(HEAD + "".join(manifest(name, *topic) for name, topic in topics.items()))
    found = {}
    for document in load("strimzi-topics.yaml"):
        spec, labels = document["spec"], document["metadata"]["labels"]
        if document["kind"] != "KafkaTopic" or labels != {"strimzi.io/cluster": OURS["cluster"]}:
            fail(f"strimzi-topics.yaml has something else: {document['metadata']}")
        if any(not isinstance(value, str) for value in spec["config"].values()):
            fail(f"a setting of {document['metadata']['name']} is not quoted")
        found[document["metadata"]["name"]] = (spec["partitions"], spec["replicas"], dict(spec["config"]))
    for name in topics.keys() | found.keys():
        if topics.get(name) != found.get(name):
            fail(f"{name}: the program asks for {topics.get(name)}, strimzi-topics.yaml has {found.get(name)}")
    (user,) = load("strimzi-user.yaml")
    rights = {}
    for acl in user["spec"]["authorization"]["acls"]:
        resource = acl["resource"]
        rights[resource["type"], resource["name"], resource["patternType"]] = set(acl["operations"])
    expected = documented()
    for key in expected.keys() | rights.keys():
        if expected.get(key) != rights.get(key):
            fail(f"{key}: docs/security.md lists {expected.get(key)}, strimzi-user.yaml grants {rights.get(key)}")
    print(f"Strimzi: {len(found)} topics as the program asks for, {len(rights)} rights as documented")


if __name__ == "__main__":
    main()
