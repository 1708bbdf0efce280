//! `samestory config …`: what holds in the end, what is wrong and where; and secrets that nobody gets to see.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A directory with settings, gone with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, settings: &str) -> Place {
        let place =
            Place(std::env::temp_dir().join(format!("samestory-settings-{name}-{}", std::process::id())));
        fs::create_dir_all(&place.0).unwrap();
        fs::write(place.0.join("samestory.toml"), settings).unwrap();
        place
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
        command.current_dir(&self.0).env("SAMESTORY_CONFIG", self.0.join("samestory.toml"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn later_places_win_and_what_holds_is_printed() {
    let place = Place::new("layers", "[match]\nthreshold = 0.3\ncontainment_threshold = 0.7\n");
    let output = place
        .command()
        .env("SAMESTORY__MATCH__THRESHOLD", "0.4")
        .env("SAMESTORY__STAGE__WORKERS", "3")
        .args(["--set", "match.threshold=0.6", "config", "print", "--redacted"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let printed: toml::Table = String::from_utf8(output.stdout).unwrap().parse().unwrap();
    let number = |table: &str, key: &str| printed[table][key].as_float();
    assert_eq!(
        (number("match", "threshold"), number("match", "containment_threshold")),
        (Some(0.6), Some(0.7))
    );
    assert_eq!(number("match", "min_confidence"), Some(0.5), "defaults are printed too");
    assert_eq!(printed["stage"]["workers"].as_integer(), Some(3));
    // What is printed can be used.
    let again = Place::new("again", &toml::to_string(&printed).unwrap());
    assert_eq!(text(&again.run(&["config", "print"])), toml::to_string(&printed).unwrap());
    // And the setting holds: at 0.99 texts that are alike are not the same.
    let bands = |set: &str| text(&place.run(&["--set", set, "bands"]));
    assert_ne!(bands("match.threshold=0.5"), bands("match.threshold=0.9"));
}

#[test]
fn what_is_wrong_is_refused_with_its_place_before_anything_starts() {
    let place = Place::new("wrong", "[stage]\nworkers = 2\n\n[topics]\npartition = 3\n");
    let output = place.run(&["config", "check"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output);
    assert!(said.contains("line 5") && said.contains("did you mean `partitions`?"), "{said}");
    let place = Place::new("right", "[match]\nalgorithm = \"simhash64\"\nhamming = 9\n");
    let said = text(&place.run(&["config", "check"]));
    assert!(said.contains("settings are right") && said.contains("warning: match.hamming = 9"), "{said}");
    for (set, part) in [
        ("match.threshold=7", "match.threshold = 7"),
        ("match.treshold=0.7", "did you mean `threshold`?"),
        ("kafka.group.id=mine", "command line"),
    ] {
        let output = place.run(&["--set", set, "config", "check"]);
        assert_eq!(output.status.code(), Some(2), "{set}");
        assert!(text(&output).contains(part), "{set}: {}", text(&output));
    }
}

#[test]
fn a_renamed_key_works_and_is_reported_once() {
    let place = Place::new("renamed", "[match]\nfloor = 0.2\n");
    let said = text(&place.run(&["config", "check"]));
    let warning = "warning: match.floor is deprecated: rename it to match.cluster_threshold";
    assert_eq!(said.matches(warning).count(), 1, "{said}");
    let printed: toml::Table =
        String::from_utf8(place.run(&["config", "print"]).stdout).unwrap().parse().unwrap();
    assert_eq!(printed["match"]["cluster_threshold"].as_float(), Some(0.2));
    let both =
        place.run(&["--set", "match.floor=0.1", "--set", "match.cluster_threshold=0.1", "config", "check"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(
        text(&both).contains("match.floor is the old name of match.cluster_threshold"),
        "{}",
        text(&both)
    );
}

#[test]
fn secrets_that_are_not_here_can_be_left_out_of_a_check() {
    let place = Place::new("absent", "[kafka]\n\"sasl.password\" = { env = \"SAMESTORY_TEST_NO_SUCH\" }\n");
    let output = place.run(&["config", "check"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("SAMESTORY_TEST_NO_SUCH"));
    assert!(place.run(&["config", "check", "--without-secrets"]).status.success());
    assert!(place.run(&["config", "print"]).status.success());
}

#[test]
fn the_reference_is_the_document() {
    let place = Place::new("reference", "");
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md")).unwrap();
    assert_eq!(String::from_utf8(place.run(&["config", "reference"]).stdout).unwrap(), document);
}

/// Secrets in every place that takes one, and everything that is printed or logged at the loudest.
#[cfg(feature = "kafka")]
#[test]
fn no_secret_is_ever_shown() {
    const SECRET: &str = "hunter2";
    let place = Place::new("secrets", "");
    fs::write(place.0.join("secret"), format!("{SECRET}-file\n")).unwrap();
    // A port that nobody listens on: the client says all it has to say about that.
    let settings = format!(
        "[http]\nlisten = \"127.0.0.1:0\"\nquery = \"127.0.0.1:0\"\ntoken = \"{SECRET}-http\"\n[registry]\nurl = \"http://127.0.0.1:9\"\nusername = \
         \"crawl\"\npassword = \"{SECRET}-registry\"\n[kafka]\n\"bootstrap.servers\" = \"127.0.0.1:9\"\n\"security.protocol\" = \
         \"sasl_plaintext\"\n\"sasl.mechanism\" = \"PLAIN\"\n\"sasl.username\" = \"{SECRET}-user\"\n\"sasl.password\" = \
         {{ env = \"OURS\" }}\n\"ssl.key.password\" = {{ file = \"{}\" }}\n\"ssl.keystore.password\" = \
         \"{SECRET}-written\"\n",
        place.0.join("secret").display()
    );
    fs::write(place.0.join("samestory.toml"), &settings).unwrap();
    let command = || {
        let mut command = place.command();
        command.env("OURS", format!("{SECRET}-env")).env("SAMESTORY_LOG", "trace");
        command.env("SAMESTORY__KAFKA__SASL_OAUTHBEARER_CONFIG", format!("{SECRET}-variable"));
        command
    };
    let mut said = String::new();
    for arguments in [
        &["config", "print"][..],
        &["config", "print", "--redacted"],
        &["config", "check"],
        &["--set", "match.threshold=9", "config", "check"],
        &["--set", "kafka.sasl.password=hunter2-set", "config", "check"],
        &["--set", "registry.token=hunter2-token", "config", "check"],
        &["--set", "registry.token=hunter2-token", "config", "print"],
        &["--set", "registry.url=https://crawl:hunter2-url@registry.example", "config", "check"],
        &["topics", "--check"],
    ] {
        said += &text(&command().args(arguments).output().unwrap());
    }
    // The library's own words on a property that it does not know, or does not take, hold the value.
    for (property, value) in [("SASL_PASWORD", "hunter2-typo"), ("SOCKET_TIMEOUT_MS", "hunter2-number")] {
        for arguments in [&["config", "check"][..], &["run"]] {
            let variable = format!("SAMESTORY__KAFKA__{property}");
            let refused = command().env(variable, value).args(arguments).output().unwrap();
            let key = property.to_lowercase().replace('_', ".");
            assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
            assert!(text(&refused).contains(&key), "{}", text(&refused));
            said += &text(&refused);
        }
    }
    let child = command().arg("run").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    let ended = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(ended.success());
    said += &text(&child.wait_with_output().unwrap());
    // Broken where the secret stands.
    fs::write(place.0.join("samestory.toml"), settings.replace("-written\"", "-written")).unwrap();
    let broken = command().args(["config", "check"]).output().unwrap();
    assert_eq!(broken.status.code(), Some(2));
    said += &text(&broken);
    assert!(said.contains("does not answer") && said.contains("bootstrap.servers"), "{said}");
    assert!(!said.contains(SECRET), "{said}");
}
