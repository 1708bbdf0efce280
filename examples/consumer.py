#!/usr/bin/env python3
"""One card per story, from samestory's output topics.

Keeps a table of cards ("one story, also from ...") correct through updates, deletes, moves between the two topics,
re-elections and expiry, and prints a card whenever it changes. All of the logic is in `Cards`; copy that class.

    pip install confluent-kafka fastavro
    examples/consumer.py --bootstrap localhost:9092
    examples/consumer.py --registry http://localhost:8081/apis/ccompat/v7      # with Avro, as `docker compose up` writes it

JSON and Avro may be mixed on one topic: a value that begins with a zero byte is Avro, and the next four bytes name its schema.
`consumer.rs` and `Consumer.java` are the same program in Rust and Java.

The table lives in memory here, so every start reads the topics from their beginning. To keep it, store it together
with the offsets of the records it was built from, in one database transaction. Articles stay until they are deleted:
they expire after `match.retention`, but samestory does not retract them. Drop old ones when you no longer show them.
"""

import argparse
import io
import json
import sys
import urllib.request


class Cards:
    """The current articles and clusters."""

    def __init__(self):
        self.articles = {}    # id -> (source offset, headers or None if it is deleted)
        self.clusters = {}    # cluster id -> cluster record
        self.canonicals = {}  # cluster id -> the article that represents it, by the last record of the cluster

    def article(self, topic, key, value, headers):
        """A record of the unique or the near-duplicate topic. Returns whether anything changed.

        When a verdict changes, the record on one topic and the tombstone on the other arrive in either order; and a
        partition that lags may write an older version after a newer one. The source offset settles both: all versions of
        an article come from one partition of the raw topic, so the larger offset is newer. A tombstone with the offset
        of the article we hold only says that the same version left the other topic.
        """
        offset = int(headers["samestory-offset"])
        held, _, where = self.articles.get(key, (-1, None, None))
        if offset < held:
            return False
        if value is None:
            # Same offset: this version left another topic. Larger offset: deleted, until a record says where it went.
            if offset == held:
                return False
            self.articles[key] = (offset, None, topic)
        else:
            self.articles[key] = (offset, headers, topic)
        return True

    def cluster(self, key, value, headers):
        """A record of the clusters topic: the whole current cluster (JSON text, or decoded), or a tombstone when fewer than two
        members are left.

        Members that expire leave the cluster, but their articles are not retracted and stay on the card. If one member
        is left, a header of the tombstone names it.
        """
        if value is None:
            self.canonicals[key] = headers.get("samestory-canonical")
            return self.clusters.pop(key, None) is not None
        self.clusters[key] = value if isinstance(value, dict) else json.loads(value)
        self.canonicals[key] = self.clusters[key]["canonical_id"]
        return True

    def live(self):
        return {key: headers for key, (_, headers, _) in self.articles.items() if headers is not None}

    def cards(self):
        """Story -> (the article that represents it, how many tell it, where). Each article names its story."""
        stories = {}
        for key, headers in self.live().items():
            stories.setdefault(headers["samestory-cluster"], {})[key] = headers
        hosts = {story: sorted(cluster["hosts"]) for story, cluster in self.clusters.items()}
        return {story: (self.canonical(story, members), len(members), hosts.get(story, []))
                for story, members in stories.items()}

    def canonical(self, story, members):
        """The article that the cluster names; else the one that the latest article of the story names; else the first."""
        latest = sorted(members, key=lambda key: (int(members[key]["samestory-offset"]), key), reverse=True)
        named = [self.canonicals.get(story)] + [members[key]["samestory-canonical"] for key in latest]
        return next((key for key in named if key in members), latest[-1])


class Values:
    """Decodes values. Schemas come from the registry, each once."""

    def __init__(self, registry):
        self.registry = registry
        self.schemas = {}

    def decode(self, value):
        if value is None or value[:1] != b"\0":
            return None if value is None else json.loads(value)
        from fastavro import parse_schema, schemaless_reader  # here, so that JSON needs no package

        number = int.from_bytes(value[1:5], "big")
        if number not in self.schemas:
            if not self.registry:
                sys.exit("the values are Avro: name the schema registry with --registry URL")
            with urllib.request.urlopen(f"{self.registry}/schemas/ids/{number}", timeout=10) as answer:
                self.schemas[number] = parse_schema(json.loads(json.load(answer)["schema"]))
        return schemaless_reader(io.BytesIO(value[5:]), self.schemas[number], None)


def headers_of(message):
    return {name: (value or b"").decode() for name, value in message.headers() or []}


def text(data):
    return None if data is None else data.decode()


def title(cluster):
    member = next((m for m in cluster["members"] if m["id"] == cluster["canonical_id"]), None)
    return (member or {}).get("title") or cluster["canonical_id"]


def main():
    from confluent_kafka import Consumer, KafkaError, TopicPartition  # here, so that `Cards` needs no package

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default="localhost:9092")
    parser.add_argument("--unique", default="samestory.unique")
    parser.add_argument("--near-duplicate", default="samestory.near-duplicate")
    parser.add_argument("--clusters", default="samestory.clusters")
    parser.add_argument("--registry", help="URL of the schema registry, for values in Avro")
    parser.add_argument("--until-end", action="store_true", help="stop at the end of the topics and print the table as JSON")
    args = parser.parse_args()

    consumer = Consumer({
        "bootstrap.servers": args.bootstrap,
        "group.id": "cards-example",          # never joined: partitions are assigned by hand below
        "isolation.level": "read_committed",  # skips records of aborted transactions
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    })
    topics = dict.fromkeys([args.unique, args.near_duplicate, args.clusters])
    known = consumer.list_topics(timeout=10).topics
    missing = [topic for topic in topics if topic not in known]
    if missing:
        sys.exit(f"no such topic: {', '.join(missing)}; `samestory topics --create` creates them")
    parts = [TopicPartition(topic, part, 0) for topic in topics for part in known[topic].partitions]
    consumer.assign(parts)

    cards, values, unread = Cards(), Values(args.registry), {(part.topic, part.partition) for part in parts}
    while not (args.until_end and not unread):
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error():
            if message.error().code() == KafkaError._PARTITION_EOF:
                unread.discard((message.topic(), message.partition()))
                continue
            sys.exit(f"cannot continue reading: {message.error()}")
        key, value, headers = text(message.key()), message.value(), headers_of(message)
        if message.topic() == args.clusters:
            value = values.decode(value)
            if cards.cluster(key, value, headers) and not args.until_end and value is not None:
                cluster = cards.clusters[key]
                print(f"* {title(cluster)} ({cluster['size']}x; also from {', '.join(cluster['hosts']) or '?'})", flush=True)
        else:
            if cards.article(message.topic(), key, value, headers) and not args.until_end and value is not None:
                if headers["samestory-verdict"] == "unique":
                    print(f"+ {key}", flush=True)
    if args.until_end:
        json.dump({story: list(card) for story, card in sorted(cards.cards().items())}, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
