"""Checks that every artifact of a workflow is used: a job that downloads it waits for the job that uploads it."""

import fnmatch
import pathlib
import re
import sys

from ruamel.yaml import YAML


def steps(job, action):
    for step in job.get("steps", []):
        if step.get("uses", "").startswith(f"actions/{action}-artifact@"):
            yield step["with"]


def names(job, name):
    """The artifact's name for each row of the job's matrix."""
    name = re.sub(r"\$\{\{ env\.(\w+) \}\}", lambda found: str(job["env"][found[1]]), name)
    for row in job.get("strategy", {}).get("matrix", {}).get("include", [{}]):
        one = re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda found: str(row[found[1]]), name)
        yield re.sub(r"\$\{\{.*?\}\}", "x", one)


count = 0
for path in sorted(pathlib.Path(".github/workflows").glob("*.yml")):
    jobs = YAML(typ="safe").load(path)["jobs"]
    wanted = []
    for title, job in jobs.items():
        needs = job.get("needs", [])
        wanted += [(needs if isinstance(needs, list) else [needs], step["pattern"]) for step in steps(job, "download")]
    for title, job in jobs.items():
        for step in steps(job, "upload"):
            for name in names(job, step["name"]):
                count += 1
                if not any(title in needs and fnmatch.fnmatch(name, pattern) for needs, pattern in wanted):
                    sys.exit(f"{path}: no job after {title} downloads the artifact {name}")
print(f"{count} artifacts of workflows are used")
