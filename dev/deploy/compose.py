"""Tests docker-compose.yml as far as possible without Docker.

  compose.py check             checks what the schema cannot: mounted files exist, ports are bound to loopback, versions are
                               those of the tests, names refer to services
  compose.py run PROGRAM       runs the stage's commands in the order of `depends_on`, with a real broker and a real registry,
                               until there are verdicts of every kind
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = "deploy/compose/samestory.toml"


def read(path):
    return YAML(typ="safe").load((ROOT / path).read_text())


SERVICES = read("docker-compose.yml")["services"]


def fail(message):
    sys.exit(f"docker-compose.yml: {message}")


def mounts(service):
    """Our files, and the paths where the container mounts them."""
    for mount in SERVICES[service].get("volumes", []):
        source, target, *_ = mount.split(":")
        if source.startswith("."):
            yield ROOT / source, target


def found_at(service, path):
    """Our file that the container sees at this path."""
    for source, target in mounts(service):
        if path == target:
            return source
        if path.startswith(target + "/"):
            return source / path[len(target) + 1:]
    fail(f"{service} has nothing at {path}")


def reaches(address, why):
    """Checks an address inside the network: a service must have the name."""
    host = address.split("//")[-1].split("/")[0].split(":")[0]
    if host not in SERVICES:
        fail(f"{why} refers to {host}, but no service has that name")


def check():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]
    kafka = re.search("<kafka.version>(.*)</kafka.version>", (ROOT / "dev/kafka.pom.xml").read_text())[1]
    registry = re.search("^version=(.*)$", (ROOT / "dev/registry").read_text(), re.M)[1]
    images = {"kafka": kafka, "registry": registry, "samestory": version}
    for name, service in SERVICES.items():
        tag = service["image"].rpartition(":")[2]
        if not re.fullmatch(r"v?\d+\.\d+\.\d+", tag):
            fail(f"{name}: {service['image']} is not pinned to a version")
        if tag != images.get(name, tag):
            fail(f"{name}: the tests use {images[name]}, but this file has {tag}")
        for port in service.get("ports", []):
            if not port.startswith("127.0.0.1:"):
                fail(f"{name}: port {port} can be reached from outside this machine")
        for source, _ in mounts(name):
            if not source.exists():
                fail(f"{name}: {source.relative_to(ROOT)} does not exist")
        for other, needs in service.get("depends_on", {}).items():
            condition = needs["condition"]
            if condition == "service_healthy" and "healthcheck" not in SERVICES[other]:
                fail(f"{name} waits until {other} is healthy, but {other} has no healthcheck")
            if condition == "service_completed_successfully" and "restart" in SERVICES[other]:
                fail(f"{name} waits until {other} has completed, but {other} is restarted whenever it ends")

    settings = tomllib.loads((ROOT / CONFIG).read_text())
    reaches(settings["kafka"]["bootstrap.servers"], CONFIG)
    reaches(settings["registry"]["url"], CONFIG)
    inside = dict(part.split("://") for part in SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(","))
    if settings["kafka"]["bootstrap.servers"] != inside["INSIDE"]:
        fail(f"{CONFIG} refers to {settings['kafka']['bootstrap.servers']}, but Kafka listens at {inside['INSIDE']}")
    reaches(SERVICES["registry"]["environment"]["APICURIO_KAFKASQL_BOOTSTRAP_SERVERS"], "registry")

    prometheus = read("deploy/compose/prometheus.yml")
    for scraped in prometheus["scrape_configs"]:
        for target in scraped["static_configs"][0]["targets"]:
            reaches(target, "Prometheus")
    reaches(prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"][0], "Prometheus")
    for rules in prometheus["rule_files"]:
        found_at("prometheus", rules)

    for source in read("deploy/compose/grafana/datasources/prometheus.yaml")["datasources"]:
        reaches(source["url"], "Grafana")
    for provider in read("deploy/compose/grafana/dashboards/samestory.yaml")["providers"]:
        dashboards = found_at("grafana", provider["options"]["path"])
        if not list(dashboards.glob("*.json")):
            fail(f"{dashboards.relative_to(ROOT)} contains no dashboard")
    home = found_at("grafana", SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    # The URL that the documents mention.
    uid = json.loads(home.read_text())["uid"]
    for document in ["README.md", "docs/compose.md"]:
        if f"http://127.0.0.1:3000/d/{uid}" not in (ROOT / document).read_text():
            fail(f"{document} does not mention the dashboard, http://127.0.0.1:3000/d/{uid}")
    print(f"compose: {len(SERVICES)} services; their files, ports, versions and names are consistent")


def metric(text, name, **labels):
    """The sum over all series of a metric with these labels."""
    total = 0.0
    for line in text.splitlines():
        if line.startswith(name + "{") and all(f'{key}="{value}"' in line for key, value in labels.items()):
            total += float(line.rpartition(" ")[2])
    return total


def run(program):
    work = Path(tempfile.mkdtemp(prefix="samestory-compose-"))
    with_us = ["--with-pid", str(os.getpid())]
    subprocess.run([ROOT / "dev/kafka", "start", work / "kafka", *with_us], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([ROOT / "dev/registry", "start", work / "registry", *with_us], check=True, stdout=subprocess.DEVNULL)
    port = 20000 + os.getpid() % 12000
    # Only what differs outside a container. Everything else comes from docker-compose.yml.
    environment = os.environ | {
        "SAMESTORY_CONFIG": str(ROOT / CONFIG),
        "SAMESTORY__KAFKA__BOOTSTRAP_SERVERS": (work / "kafka/bootstrap").read_text().strip(),
        "SAMESTORY__REGISTRY__URL": (work / "registry/url").read_text().strip(),
        "SAMESTORY__STAGE__STATE": str(work / "state"),
        "SAMESTORY__HTTP__LISTEN": f"127.0.0.1:{port}",
        "SAMESTORY__HTTP__QUERY": f"127.0.0.1:{port + 1}",
    }

    def command(service, words):
        here = [str(found_at(service, word)) if word.startswith("/") else str(word) for word in words]
        return [program, *here]

    background = []
    began = time.monotonic()
    try:
        for service in ["topics", "schemas"]:
            subprocess.run(command(service, SERVICES[service]["command"]), env=environment, check=True)
        log = open(work / "log", "w")
        background.append(subprocess.Popen(command("samestory", SERVICES["samestory"]["command"]), env=environment, stderr=log))
        probe = SERVICES["samestory"]["healthcheck"]["test"]
        assert probe[:2] == ["CMD", "samestory"], probe
        while subprocess.run([program, *probe[2:]], env=environment, capture_output=True).returncode != 0:
            if time.monotonic() - began > 120 or background[0].poll() is not None:
                sys.exit("the stage did not become ready:\n" + (work / "log").read_text())
            time.sleep(0.2)
        # Faster than one per second, to keep the test short.
        words = ["20" if before == "--rate" else word for before, word in zip(
            ["", *SERVICES["articles"]["command"]], SERVICES["articles"]["command"])]
        background.append(subprocess.Popen(command("articles", words), env=environment))
        while True:
            scrape = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
            seen = {verdict: metric(scrape, "samestory_articles_total", verdict=verdict)
                    for verdict in ["unique", "near-duplicate", "exact-duplicate"]}
            # More than one round, so that --repeat is tested too.
            if all(seen.values()) and sum(seen.values()) > 46:
                break
            if time.monotonic() - began > 180:
                sys.exit(f"missing verdict kinds: {seen}\n" + (work / "log").read_text())
            time.sleep(0.2)
        if dead := metric(scrape, "samestory_dead_letters_total"):
            sys.exit(f"{dead} articles became dead letters")
        print(f"compose: its commands create topics and schemas, then verdicts: {seen}")
    finally:
        for process in reversed(background):
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        for tool in ["registry", "kafka"]:
            subprocess.run([ROOT / "dev" / tool, "stop", work / tool], stdout=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", work])


if __name__ == "__main__":
    check() if sys.argv[1:] == ["check"] else run(Path(sys.argv[2]).resolve())
