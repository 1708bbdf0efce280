//! The registry client in every kind of trouble: bounded, and never a definite no that the registry did not
//! give.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use samestory::config::{Config, Settings};
use samestory::formats::registry::{Registry, RegistryError, SchemaCache};

use super::fake_registry::{FakeRegistry, Reply};

const SCHEMA: &str = r#"{"type":"record","name":"A","fields":[{"name":"id","type":"string"}]}"#;

fn registry(url: &str, more: &str) -> Registry {
    // Long enough for a busy machine; tests that wait for the timeout set a shorter one.
    let timeout = if more.contains("timeout") { "" } else { "timeout = \"10s\"\n" };
    let settings = format!("[registry]\nurl = \"{url}\"\n{timeout}{more}");
    let settings: Settings = toml::from_str(&settings).unwrap();
    Registry::new(&Config::try_from(settings).unwrap().bus.registry.unwrap()).unwrap()
}

fn away(registry: &Registry) -> String {
    let began = Instant::now();
    let error = registry.schema(7).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(20), "{error}: {:?}", began.elapsed());
    match error {
        RegistryError::Away(why) => why,
        other => panic!("{other:?} says something about the data"),
    }
}

#[test]
fn only_the_registrys_own_no_is_a_no() {
    let fake_registry = FakeRegistry::new(|_| Reply::no_schema());
    let asks = registry(&fake_registry.url, "");
    assert!(matches!(asks.schema(7), Err(RegistryError::No(why)) if why.contains("no schema with id 7")));
    // A wrong address answers 404 to everything, and a missing subject says nothing about an id.
    fake_registry.behave(|_| Reply::new(404, "<html>not found</html>"));
    assert!(away(&asks).contains("is registry.url right?"));
    fake_registry.behave(|_| Reply::new(404, r#"{"error_code":40401,"message":"Subject not found"}"#));
    away(&asks);
    fake_registry.behave(|_| Reply::new(404, r#"{"error_code":404,"message":"HTTP 404 Not Found"}"#));
    away(&asks);
}

#[test]
fn trouble_of_every_kind_is_trouble() {
    let fake_registry =
        FakeRegistry::new(|_| Reply::new(500, r#"{"error_code":50001,"message":"store\nbroken"}"#));
    let asks = registry(&fake_registry.url, "max_bytes = 10000");
    assert!(away(&asks).contains("status 500: storebroken"));
    fake_registry.behave(|_| Reply::new(401, ""));
    assert!(away(&asks).contains("registry.username"));
    fake_registry.behave(|_| Reply::new(200, "garbage"));
    assert!(away(&asks).contains("did not answer with JSON"));
    fake_registry.behave(|_| Reply::new(200, "[1, 2]"));
    assert!(away(&asks).contains("did not answer with a schema"));
    fake_registry.behave(|_| Reply::schema(&format!("\"{}\"", "x".repeat(20_000))));
    assert!(away(&asks).contains("more than 10000 bytes"));
    let hasty = registry(&fake_registry.url, "timeout = \"300ms\"");
    fake_registry.behave(|_| Reply { delay: Duration::from_secs(3), ..Reply::schema(SCHEMA) });
    assert!(away(&hasty).contains("timed out"));
    fake_registry.behave(|_| Reply { drip: Duration::from_millis(100), ..Reply::schema(SCHEMA) });
    assert!(away(&hasty).contains("timed out"));
    let url = fake_registry.url.clone();
    drop(fake_registry);
    away(&registry(&url, ""));
    away(&registry("http://nobody.invalid", ""));
}

#[test]
fn redirects_are_not_followed() {
    let there = FakeRegistry::new(|_| Reply::schema(SCHEMA));
    let to = there.url.clone();
    let fake_registry = FakeRegistry::new(move |path| Reply {
        headers: format!("Location: {to}{path}\r\n"),
        ..Reply::new(302, "")
    });
    let why = away(&registry(&fake_registry.url, "username = \"u\"\npassword = \"hush\""));
    assert!(why.contains("redirect") && !why.contains("hush"), "{why}");
    assert!(there.asked().is_empty());
}

#[test]
fn credentials_are_sent_correctly() {
    let fake_registry = FakeRegistry::new(|_| Reply::schema(SCHEMA));
    registry(&fake_registry.url, "username = \"Aladdin\"\npassword = \"open sesame\"").schema(1).unwrap();
    registry(&fake_registry.url, "token = \"t-0\"").schema(1).unwrap();
    registry(&fake_registry.url, "").schema(1).unwrap();
    let asked: Vec<String> = fake_registry.asked().iter().map(|request| request.to_lowercase()).collect();
    assert!(asked[0].contains("authorization: basic qwxhzgrpbjpvcgvuihnlc2ftzq=="), "{asked:?}");
    assert!(asked[1].contains("authorization: bearer t-0"));
    assert!(!asked[2].contains("authorization"));
}

#[test]
fn schemas_that_cannot_be_used_are_a_no_and_references_are_followed() {
    let fake_registry = FakeRegistry::new(|_| Reply::new(200, r#"{"schema":"{}","schemaType":"PROTOBUF"}"#));
    let asks = registry(&fake_registry.url, "");
    assert!(matches!(asks.schema(7), Err(RegistryError::No(why)) if why.contains("PROTOBUF")));
    fake_registry.behave(|_| Reply::schema("{\"type\":\"recrod\"}"));
    assert!(matches!(asks.schema(7), Err(RegistryError::No(why)) if why.contains("id 7 cannot be used")));
    fake_registry.behave(|path| match path {
        "/schemas/ids/7" => Reply::new(
            200,
            serde_json::json!({"schema": r#"{"type":"array","items":"A"}"#,
                "references": [{"name": "A", "subject": "a b", "version": 3}]})
            .to_string(),
        ),
        "/subjects/a%20b/versions/3" => Reply::schema(SCHEMA),
        _ => Reply::new(500, ""),
    });
    asks.schema(7).unwrap();
    // One that refers to itself, under ever new names.
    fake_registry.behave(|path| {
        let version = path.rsplit('/').next().unwrap().parse::<u64>().unwrap_or(0) + 1;
        let reference = serde_json::json!({"name": "x", "subject": "x", "version": version});
        Reply::new(200, serde_json::json!({"schema": SCHEMA, "references": [reference]}).to_string())
    });
    assert!(matches!(asks.schema(7), Err(RegistryError::No(why)) if why.contains("more than 64")));
}

#[test]
fn each_id_is_requested_once_and_the_cache_is_bounded() {
    let fake_registry = FakeRegistry::new(|path| match path {
        "/schemas/ids/404" => Reply::no_schema(),
        _ => Reply::schema(SCHEMA),
    });
    let mut cache =
        SchemaCache::new(Arc::new(registry(&fake_registry.url, "cache = 3\nnegative_cache = \"300ms\"")));
    let ids = |ids: &[u32]| ids.iter().copied().collect::<BTreeSet<u32>>();
    let count = || fake_registry.asked().len();
    for _ in 0..50 {
        cache.load(&ids(&[1, 2, 404])).unwrap();
        assert!(cache.get(1).is_ok() && cache.get(404).unwrap_err().message.contains("404"));
        cache.evict();
    }
    assert_eq!(count(), 3);
    std::thread::sleep(Duration::from_millis(350));
    cache.evict();
    cache.load(&ids(&[1, 404])).unwrap();
    assert_eq!(count(), 4, "a no is believed for a while only");
    cache.evict();
    cache.load(&ids(&[3, 4, 5, 6])).unwrap();
    assert!([3, 4, 5, 6].iter().all(|&id| cache.get(id).is_ok()), "a batch has all it needs");
    cache.evict();
    cache.load(&ids(&[5, 6])).unwrap();
    assert_eq!(count(), 8);
    cache.load(&ids(&[1])).unwrap();
    assert_eq!(count(), 9, "the oldest is forgotten first");
    fake_registry.behave(|_| Reply::new(503, ""));
    assert!(cache.load(&ids(&[1, 9])).is_err());
    fake_registry.behave(|_| Reply::schema(SCHEMA));
    cache.load(&ids(&[1, 9])).unwrap();
}

/// A process that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_registry_behind_tls_is_trusted_with_its_own_ca_only() {
    let folder = crate::folder::Folder::new("registry-tls");
    let openssl = |arguments: &[&str]| {
        let output = Command::new("openssl").args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let ca = ["req", "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca"];
    openssl(&[&ca[..], &key].concat());
    openssl(&[&["req", "-keyout", "s.key", "-out", "s.csr", "-subj", "/CN=registry"][..], &key].concat());
    folder.write("ext", b"subjectAltName=IP:127.0.0.1");
    let sign = [
        "x509",
        "-req",
        "-in",
        "s.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-out",
        "s.pem",
    ];
    openssl(&[&sign[..], &["-days", "2", "-extfile", "ext"]].concat());
    openssl(
        &[&["req", "-x509", "-keyout", "o.key", "-out", "other.pem", "-subj", "/CN=other"][..], &key]
            .concat(),
    );
    fs::create_dir_all(folder.path().join("schemas/ids")).unwrap();
    let body = serde_json::json!({ "schema": SCHEMA }).to_string();
    let length = body.len();
    let answer = format!("HTTP/1.0 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    folder.write("schemas/ids/7", answer.as_bytes());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let server = Command::new("openssl")
        .args(["s_server", "-quiet", "-cert", "s.pem", "-key", "s.key", "-HTTP", "-accept"])
        .arg(format!("127.0.0.1:{port}"))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _server = Server(server);
    let with = |ca: &str| {
        let path = folder.path().join(ca);
        registry(&format!("https://127.0.0.1:{port}"), &format!("ca = {path:?}"))
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Err(error) = with("ca.pem").schema(7) {
        assert!(Instant::now() < deadline, "{error}");
        std::thread::sleep(Duration::from_millis(100));
    }
    for stranger in [with("other.pem"), registry(&format!("https://127.0.0.1:{port}"), "")] {
        let why = away(&stranger);
        assert!(why.contains("certificate"), "{why}");
    }
    let none = folder.path().join("ext");
    let settings: Settings =
        toml::from_str(&format!("[registry]\nurl = \"https://x\"\nca = {none:?}")).unwrap();
    let refused = Registry::new(&Config::try_from(settings).unwrap().bus.registry.unwrap()).unwrap_err();
    assert!(refused.to_string().contains("registry.ca"), "{refused}");
}
