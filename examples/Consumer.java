// One card per story, from samestory's output topics: examples/consumer.py on the JVM, with the plain consumer. All of the logic
// is in Cards; copy that class. docs/consumers.md explains the rules.
//
// Needs kafka-clients, avro and jackson-databind on the class path; dev/jvm fetches and runs it:
//   dev/jvm examples/Consumer.java --bootstrap localhost:9092 [--registry http://localhost:8081/apis/ccompat/v7]

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.*;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Consumer {
    static final ObjectMapper JSON = new ObjectMapper();

    /** What a cards table needs of a cluster record. */
    record Cluster(String canonical, SortedSet<String> hosts) {}

    /** An article: its source offset, and its headers, or null if it is deleted. */
    record Article(long offset, Map<String, String> headers) {}

    /** The current articles and clusters. */
    static class Cards {
        final SortedMap<String, Article> articles = new TreeMap<>();
        final Map<String, Cluster> clusters = new HashMap<>();
        final Map<String, String> canonicals = new HashMap<>();

        /** A record of the unique or the near-duplicate topic. The larger source offset is newer; a tombstone with the offset
         *  that we hold only says that the same version left the other topic. */
        void article(String id, boolean tombstone, Map<String, String> headers) {
            long offset = Long.parseLong(headers.get("samestory-offset"));
            long held = articles.containsKey(id) ? articles.get(id).offset() : -1;
            if (offset > held || (offset == held && !tombstone)) {
                articles.put(id, new Article(offset, tombstone ? null : headers));
            }
        }

        /** A record of the clusters topic. The header of a tombstone names the member that is left, if there is one. */
        void cluster(String id, Cluster cluster, Map<String, String> headers) {
            if (cluster == null) {
                clusters.remove(id);
            } else {
                clusters.put(id, cluster);
            }
            canonicals.put(id, cluster == null ? headers.get("samestory-canonical") : cluster.canonical());
        }

        /** Story -> the article that represents it, how many tell it, and where. */
        SortedMap<String, List<Object>> cards() {
            SortedMap<String, List<String>> stories = new TreeMap<>();
            articles.forEach((id, article) -> {
                if (article.headers() != null) {
                    stories.computeIfAbsent(article.headers().get("samestory-cluster"), story -> new ArrayList<>()).add(id);
                }
            });
            SortedMap<String, List<Object>> cards = new TreeMap<>();
            stories.forEach((story, ids) -> {
                ids.sort(Comparator.comparing((String id) -> articles.get(id).offset()).thenComparing(id -> id).reversed());
                List<String> named = new ArrayList<>();
                named.add(canonicals.get(story));
                ids.forEach(id -> named.add(articles.get(id).headers().get("samestory-canonical")));
                named.add(ids.get(ids.size() - 1));
                String canonical = named.stream().filter(ids::contains).findFirst().orElseThrow();
                Cluster cluster = clusters.get(story);
                cards.put(story, List.of(canonical, ids.size(), cluster == null ? List.of() : cluster.hosts()));
            });
            return cards;
        }
    }

    /** Decodes clusters: a zero byte and a schema id introduce Avro, anything else is JSON. */
    static class Clusters {
        final String registry;
        final Map<Integer, Schema> schemas = new HashMap<>();

        Clusters(String registry) {
            this.registry = registry;
        }

        Cluster decode(byte[] value) throws Exception {
            SortedSet<String> hosts = new TreeSet<>();
            if (value[0] != 0) {
                JsonNode cluster = JSON.readTree(value);
                cluster.get("hosts").forEach(host -> hosts.add(host.asText()));
                return new Cluster(cluster.get("canonical_id").asText(), hosts);
            }
            int id = ByteBuffer.wrap(value, 1, 4).getInt();
            if (!schemas.containsKey(id)) {
                schemas.put(id, fetch(id));
            }
            var decoder = DecoderFactory.get().binaryDecoder(value, 5, value.length - 5, null);
            GenericRecord cluster = new GenericDatumReader<GenericRecord>(schemas.get(id)).read(null, decoder);
            ((List<?>) cluster.get("hosts")).forEach(host -> hosts.add(host.toString()));
            return new Cluster(cluster.get("canonical_id").toString(), hosts);
        }

        Schema fetch(int id) throws Exception {
            if (registry.isEmpty()) {
                throw new IllegalStateException("the values are Avro: name the schema registry with --registry URL");
            }
            var request = HttpRequest.newBuilder(URI.create(registry + "/schemas/ids/" + id)).build();
            var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
            return new Schema.Parser().parse(JSON.readTree(answer.body()).get("schema").asText());
        }
    }

    static Map<String, String> headers(ConsumerRecord<?, ?> record) {
        Map<String, String> headers = new HashMap<>();
        for (Header header : record.headers()) {
            headers.put(header.key(), header.value() == null ? "" : new String(header.value()));
        }
        return headers;
    }

    public static void main(String[] given) throws Exception {
        List<String> words = List.of(given);
        var option = new Object() {
            String of(String name, String otherwise) {
                int at = words.indexOf(name);
                return at < 0 ? otherwise : words.get(at + 1);
            }
        };
        boolean untilEnd = words.contains("--until-end");
        String clusterTopic = option.of("--clusters", "samestory.clusters");
        Set<String> topics = new TreeSet<>(List.of(clusterTopic, option.of("--unique", "samestory.unique"),
            option.of("--near-duplicate", "samestory.near-duplicate")));
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", option.of("--bootstrap", "localhost:9092"),
            "isolation.level", "read_committed",  // skips records of aborted transactions
            "enable.auto.commit", false,          // no group: partitions are assigned by hand below
            "key.deserializer", StringDeserializer.class,
            "value.deserializer", ByteArrayDeserializer.class);
        Cards cards = new Cards();
        Clusters clusters = new Clusters(option.of("--registry", ""));
        try (var consumer = new KafkaConsumer<String, byte[]>(settings)) {
            List<TopicPartition> partitions = topics.stream().flatMap(topic -> consumer.partitionsFor(topic).stream())
                .map(partition -> new TopicPartition(partition.topic(), partition.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (!untilEnd || ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                for (var record : consumer.poll(Duration.ofSeconds(1))) {
                    Map<String, String> headers = headers(record);
                    if (record.topic().equals(clusterTopic)) {
                        Cluster cluster = record.value() == null ? null : clusters.decode(record.value());
                        if (!untilEnd && cluster != null) {
                            System.out.println("* " + cluster.canonical() + " (also from " + cluster.hosts() + ")");
                        }
                        cards.cluster(record.key(), cluster, headers);
                    } else {
                        if (!untilEnd && "unique".equals(headers.get("samestory-verdict"))) {
                            System.out.println("+ " + record.key());
                        }
                        cards.article(record.key(), record.value() == null, headers);
                    }
                }
            }
        }
        System.out.println(JSON.writerWithDefaultPrettyPrinter().writeValueAsString(cards.cards()));
    }
}
