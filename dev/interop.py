"""Produces articles and consumes records with Confluent's Avro serializers. See dev/interop."""
import datetime
import json
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

FIRST = {
    "type": "record", "name": "Story", "namespace": "crawler", "fields": [
        {"name": "story_id", "type": "string"},
        {"name": "text", "type": "string"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEWS", "BLOG"]}},
        {"name": "crawled", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ]}

# The evolved schema: another field order, a new first field, and an optional text.
SECOND = {
    "type": "record", "name": "Story", "namespace": "crawler", "fields": [
        {"name": "source", "type": ["null", {"type": "record", "name": "Source", "fields": [
            {"name": "domain", "type": "string"}, {"name": "rank", "type": "int", "default": 0}]}], "default": None},
        {"name": "crawled", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "text", "type": ["null", "string"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEWS", "BLOG", "WIRE"]}},
        {"name": "story_id", "type": "string"},
    ]}


def text(number):
    """Text of a story; the second half of the stories repeats the first."""
    harbour = ("The ferry to island number {n} will run again from Monday, harbour master {n} said, after {n} weeks of "
               "repairs to pier {n}. Tickets for boat {n} can be bought on board. ")
    own = " ".join(f"word{number}x{i}" for i in range(60))
    return harbour.format(n=number) + own


def produce(bootstrap, registry, topic, count):
    client = SchemaRegistryClient({"url": registry})
    context = SerializationContext(topic, MessageField.VALUE)
    first = AvroSerializer(client, json.dumps(FIRST))
    second = AvroSerializer(client, json.dumps(SECOND))
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    at = datetime.datetime(2026, 3, 2, 6, 10, tzinfo=datetime.timezone.utc)
    for number in range(count):
        half = count // 2
        story = {"story_id": f"s{number}", "text": text(number % half), "kind": "NEWS", "crawled": at}
        if number < half:
            value = first(story, context)
        else:
            story.update(kind="WIRE", source={"domain": "wire.example", "rank": number})
            value = second(story, context)
        producer.produce(topic, key=story["story_id"].encode(), value=value, partition=0)
    if producer.flush(30):
        sys.exit("not every record was delivered")


def consume(bootstrap, registry, topic, count):
    read = AvroDeserializer(SchemaRegistryClient({"url": registry}))
    context = SerializationContext(topic, MessageField.VALUE)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"interop-{time.time()}",
                         "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    deadline, seen = time.time() + 60, 0
    while seen < count and time.time() < deadline:
        message = consumer.poll(0.5)
        if message is None or message.error():
            continue
        value = None if message.value() is None else read(message.value(), context)
        print(json.dumps({"key": message.key().decode(), "value": value}, default=str))
        seen += 1
    consumer.close()
    if seen < count:
        sys.exit(f"{seen} of {count} records")


if __name__ == "__main__":
    verb, bootstrap, registry, topic, count = sys.argv[1:]
    {"produce": produce, "consume": consume}[verb](bootstrap, registry, topic, int(count))
