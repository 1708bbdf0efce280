//! `samestory ready`: turns the status of a stage into an exit code, for environments without another HTTP
//! client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};
use std::thread;

/// Answers every request with `answer`, with PATH replaced by the requested path.
fn stage(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 1024];
            let length = stream.read(&mut asked).unwrap();
            let path = String::from_utf8_lossy(&asked[..length]).split(' ').nth(1).unwrap().to_owned();
            stream.write_all(answer.replace("PATH", &path).as_bytes()).unwrap();
        }
    });
    address
}

fn ask(listen: &str, more: &[&str]) -> Output {
    let listen = format!("http.listen={listen}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
    command.env_remove("SAMESTORY_CONFIG").args(["--set", &listen, "ready"]).args(more).output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn the_status_of_the_stage_becomes_an_exit_code() {
    let ready = stage("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nPATH");
    // A stage that listens on all interfaces is asked on loopback.
    for (listen, more, path) in [
        (ready.to_string(), &[][..], "/readyz"),
        (format!("0.0.0.0:{}", ready.port()), &["--alive"], "/healthz"),
    ] {
        let output = ask(&listen, more);
        assert_eq!((output.status.code(), printed(&output)), (Some(0), format!("{path}\n")));
    }
    let not = stage("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"ready\":false,\"reasons\":[\"restoring\"]}");
    let output = ask(&not.to_string(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        printed(&output).contains("restoring") && printed(&output).contains("not ready"),
        "{}",
        printed(&output)
    );
}

#[test]
fn no_answer_means_not_ready_and_no_listener_means_a_wrong_setting() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let output = ask(&gone, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(printed(&output).contains(&format!("{gone} does not answer")), "{}", printed(&output));
    let stranger = stage("220 mail.example ESMTP\r\n\r\n");
    let output = ask(&stranger.to_string(), &[]);
    assert!(
        output.status.code() == Some(1) && printed(&output).contains("speaks no HTTP"),
        "{}",
        printed(&output)
    );
    let output = ask("off", &[]);
    assert!(
        output.status.code() == Some(2) && printed(&output).contains("http.listen = off"),
        "{}",
        printed(&output)
    );
}

#[test]
fn standard_input_is_not_produced_twice() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_samestory")).args(["produce", "-", "--repeat"]).output().unwrap();
    assert!(
        output.status.code() == Some(2) && printed(&output).contains("only once"),
        "{}",
        printed(&output)
    );
}
