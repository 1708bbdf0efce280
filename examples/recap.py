#!/usr/bin/env python3
"""A recap of the last days: one article per story, with its duplicates listed, and counts.

    pip install confluent-kafka
    examples/recap.py --bootstrap localhost:9092                the last 7 days' clusters, from the bus
    samestory file articles.ndjson --clusters clusters.ndjson > tagged.ndjson
    examples/recap.py --clusters clusters.ndjson --tagged tagged.ndjson

Reads cluster records (one line or one Kafka record per cluster). Articles that repeat nothing have no cluster; they are
counted from the tagged articles: `--tagged FILE`, or the unique topic on the bus. With `--json` it prints one JSON object.
"""

import argparse
import datetime
import json
import sys


def when(text):
    """A time as samestory writes it, or None."""
    try:
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        return None


def recap(clusters, singles, since=None):
    """One entry per story that was seen since then, the largest first, and the counts.

    `clusters` are cluster records, `singles` ids of articles that are not in any of them.
    """
    stories, members, clustered = [], 0, set()
    for cluster in clusters:
        clustered.update(member["id"] for member in cluster.get("members", []))
        last = when(cluster.get("last_seen"))
        if since and last and last < since:
            continue
        canonical = cluster["canonical_id"]
        others = [member for member in cluster.get("members", []) if member["id"] != canonical]
        head = next((member for member in cluster.get("members", []) if member["id"] == canonical), {"id": canonical})
        # A record lists the newest 50 members; `size` counts all of them.
        size = max(cluster.get("size", 0), len(others) + 1)
        members += size
        stories.append({
            "id": canonical,
            "title": head.get("title"),
            "url": head.get("url"),
            "cluster_id": cluster["cluster_id"],
            "size": size,
            "duplicates": [{key: member.get(key) for key in ("id", "title", "host", "match_type")} for member in others],
        })
    stories.sort(key=lambda story: (-story["size"], story["id"]))
    alone = sum(1 for single in set(singles) if single not in clustered)
    unique = len(stories) + alone
    total = members + alone
    return {"stats": {"total": total, "unique": unique, "duplicate": total - unique}, "stories": stories}


def from_files(clusters, tagged):
    with open(clusters, encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines if line.strip()]
    ids = []
    if tagged:
        with open(tagged, encoding="utf-8") as lines:
            verdicts = (json.loads(line) for line in lines if line.strip())
            ids = [verdict["id"] for verdict in verdicts if verdict.get("verdict") == "unique"]
    return records, ids


def from_bus(bootstrap, topics, since):
    """The current clusters, and the unique articles since then. Reads to the end of both topics and commits nothing."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({
        "bootstrap.servers": bootstrap,
        "group.id": "samestory-recap",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    })
    clusters, unique, starts, ends = {}, {}, [], {}
    for topic in topics:
        described = consumer.list_topics(topic, timeout=10).topics[topic]
        if described.error:
            sys.exit(f"{topic}: {described.error}")
        for partition in described.partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
            if high > low:
                ends[topic, partition] = high
                starts.append(TopicPartition(topic, partition, low))
    consumer.assign(starts)
    while ends:
        message = consumer.poll(1.0)
        # A transaction's marker takes the last offset, so the position tells the end and not the last record.
        for place in consumer.position(starts):
            if place.offset >= ends.get((place.topic, place.partition), float("inf")):
                del ends[place.topic, place.partition]
        if message is None:
            continue
        if message.error():
            sys.exit(f"Kafka: {message.error()}")
        key, value = message.key().decode(), message.value()
        table = clusters if message.topic() == topics[0] else unique
        if value is None:
            table.pop(key, None)
        elif table is clusters:
            clusters[key] = json.loads(value)
        elif message.timestamp()[1] / 1000 >= since.timestamp():
            unique[key] = True
        else:
            unique.pop(key, None)
    consumer.close()
    return list(clusters.values()), list(unique)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default="localhost:9092")
    parser.add_argument("--clusters-topic", default="samestory.clusters")
    parser.add_argument("--unique-topic", default="samestory.unique")
    parser.add_argument("--clusters", metavar="FILE", help="clusters of a file run, instead of the bus")
    parser.add_argument("--tagged", metavar="FILE", help="tagged articles of the same run, to count single articles")
    parser.add_argument("--days", type=float, default=7, help="stories last seen within so many days (bus only)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    if args.clusters:
        result = recap(*from_files(args.clusters, args.tagged))
    else:
        since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=args.days)
        result = recap(*from_bus(args.bootstrap, [args.clusters_topic, args.unique_topic], since), since)
    if args.json:
        print(json.dumps(result, ensure_ascii=False))
        return
    stats = result["stats"]
    print(f"{stats['total']} articles: {stats['unique']} unique, {stats['duplicate']} duplicates")
    for story in result["stories"]:
        print(f"\n{story['title'] or story['id']}  ({story['size']} articles)")
        for other in story["duplicates"]:
            print(f"  {other['match_type'] or '-':<10} {other['host'] or '-':<24} {other['id']}")


if __name__ == "__main__":
    main()
