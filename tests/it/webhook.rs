//! `samestory webhook test` against a real HTTP server.

use std::process::{Command, Output};

use serde_json::Value;

use crate::hook_server::{HookServer, Treatment};

/// Runs the command with these settings in the environment: a command line must not hold secrets.
fn test(settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
    for (key, value) in settings {
        command.env(format!("SAMESTORY__WEBHOOK__{key}"), value);
    }
    command.args(["webhook", "test"]).env_remove("SAMESTORY_CONFIG").output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn a_sample_event_is_sent_and_signed() {
    let server = HookServer::start(&[Treatment::Status(202)]);
    let output = test(&[("URL", &server.url), ("SECRET", "Jefe")]);
    assert!(output.status.success(), "{}", printed(&output));
    assert_eq!(printed(&output), "HTTP 202: the answer\n");
    let received = server.received();
    let [request] = received.as_slice() else { panic!("{received:?}") };
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(
        (&body["events"][0]["verdict"], &body["events"][0]["type"]),
        (&"near-duplicate".into(), &"verdict".into())
    );
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("idempotency-key").map(str::len), Some(32));
    // The receiver computes the same signature with its own tool.
    let signature = request.header("samestory-signature").unwrap();
    let (time, hmac) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    let script = "import hashlib, hmac, sys; print(hmac.new(b'Jefe', sys.argv[1].encode(), hashlib.sha256).hexdigest())";
    let signed = format!("{time}.{}", request.body);
    let python = Command::new("python3").args(["-c", script, &signed]).output().unwrap();
    assert_eq!(String::from_utf8(python.stdout).unwrap().trim(), hmac);
}

#[test]
fn a_server_that_does_not_accept_is_named_as_the_reason() {
    for (treatment, expected) in [
        (Treatment::Status(404), "HTTP 404: the answer"),
        (Treatment::Status(302), "HTTP 302"),
        (Treatment::Status(500), "HTTP 500"),
        (Treatment::Stall, "time"),
        (Treatment::Garbage, ""),
        (Treatment::Break, ""),
    ] {
        let server = HookServer::start(&[treatment]);
        let output = test(&[("URL", &server.url), ("TIMEOUT", "1s")]);
        let printed = printed(&output);
        assert_eq!(output.status.code(), Some(1), "{treatment:?}: {printed}");
        assert!(
            printed.contains("does not accept a sample event") && printed.contains(expected),
            "{printed}"
        );
        assert!(!printed.contains(&server.url), "the address may be a secret: {printed}");
        assert_eq!(
            server.received().len(),
            1,
            "{treatment:?}: a test is not repeated and follows no redirect"
        );
    }
    let nobody = test(&[("URL", "http://127.0.0.1:1/hook")]);
    assert_eq!(nobody.status.code(), Some(1), "{}", printed(&nobody));
}

#[test]
fn without_an_address_nothing_is_sent() {
    let output = test(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(printed(&output).contains("webhook.url is not set"), "{}", printed(&output));
}
