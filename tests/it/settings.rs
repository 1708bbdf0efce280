//! `samestory config …`: the effective settings, what is wrong with them and where; and secrets are never
//! shown.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A directory with settings, removed with the test.
struct SettingsDir(PathBuf);

impl SettingsDir {
    fn new(name: &str, settings: &str) -> SettingsDir {
        let dir = SettingsDir(
            std::env::temp_dir().join(format!("samestory-settings-{name}-{}", std::process::id())),
        );
        fs::create_dir_all(&dir.0).unwrap();
        fs::write(dir.0.join("samestory.toml"), settings).unwrap();
        dir
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

impl Drop for SettingsDir {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn later_places_win_and_what_holds_is_printed() {
    let dir = SettingsDir::new("layers", "[match]\nthreshold = 0.3\ncontainment_threshold = 0.7\n");
    let output = dir
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
    // The output is a valid settings file.
    let again = SettingsDir::new("again", &toml::to_string(&printed).unwrap());
    assert_eq!(text(&again.run(&["config", "print"])), toml::to_string(&printed).unwrap());
    // And the setting takes effect: at 0.99, similar texts are not the same.
    let bands = |set: &str| text(&dir.run(&["--set", set, "bands"]));
    assert_ne!(bands("match.threshold=0.5"), bands("match.threshold=0.9"));
}

#[test]
fn wrong_settings_are_refused_with_their_location_before_anything_starts() {
    let dir = SettingsDir::new("wrong", "[stage]\nworkers = 2\n\n[topics]\npartition = 3\n");
    let output = dir.run(&["config", "check"]);
    assert_eq!(output.status.code(), Some(2));
    let printed_text = text(&output);
    assert!(
        printed_text.contains("line 5") && printed_text.contains("did you mean `partitions`?"),
        "{printed_text}"
    );
    let dir = SettingsDir::new("right", "[match]\nalgorithm = \"simhash64\"\nhamming = 9\n");
    let printed_text = text(&dir.run(&["config", "check"]));
    assert!(
        printed_text.contains("the settings are valid")
            && printed_text.contains("warning: match.hamming = 9"),
        "{printed_text}"
    );
    for (set, part) in [
        ("match.threshold=7", "match.threshold = 7"),
        ("match.treshold=0.7", "did you mean `threshold`?"),
        ("kafka.group.id=mine", "command line"),
    ] {
        let output = dir.run(&["--set", set, "config", "check"]);
        assert_eq!(output.status.code(), Some(2), "{set}");
        assert!(text(&output).contains(part), "{set}: {}", text(&output));
    }
}

#[test]
fn a_renamed_key_works_and_is_reported_once() {
    let dir = SettingsDir::new("renamed", "[match]\nfloor = 0.2\n");
    let said = text(&dir.run(&["config", "check"]));
    let warning = "warning: match.floor is deprecated: rename it to match.cluster_threshold";
    assert_eq!(said.matches(warning).count(), 1, "{said}");
    let printed: toml::Table =
        String::from_utf8(dir.run(&["config", "print"]).stdout).unwrap().parse().unwrap();
    assert_eq!(printed["match"]["cluster_threshold"].as_float(), Some(0.2));
    let both =
        dir.run(&["--set", "match.floor=0.1", "--set", "match.cluster_threshold=0.1", "config", "check"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(
        text(&both).contains("match.floor is the old name of match.cluster_threshold"),
        "{}",
        text(&both)
    );
}

#[test]
fn secrets_that_are_not_here_can_be_left_out_of_a_check() {
    let dir =
        SettingsDir::new("absent", "[kafka]\n\"sasl.password\" = { env = \"SAMESTORY_TEST_NO_SUCH\" }\n");
    let output = dir.run(&["config", "check"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("SAMESTORY_TEST_NO_SUCH"));
    assert!(dir.run(&["config", "check", "--without-secrets"]).status.success());
    assert!(dir.run(&["config", "print"]).status.success());
}

#[test]
fn the_reference_is_the_document() {
    let dir = SettingsDir::new("reference", "");
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md")).unwrap();
    assert_eq!(String::from_utf8(dir.run(&["config", "reference"]).stdout).unwrap(), document);
}

/// Secrets everywhere that accepts one, and everything printed or logged at the highest level.
#[cfg(feature = "kafka")]
#[test]
fn no_secret_is_ever_shown() {
    use std::process::Stdio;
    use std::time::Duration;

    const SECRET: &str = "hunter2";
    let dir = SettingsDir::new("secrets", "");
    fs::write(dir.0.join("secret"), format!("{SECRET}-file\n")).unwrap();
    // A port without a listener: the client logs all it can about that.
    let settings = format!(
        "[http]\nlisten = \"127.0.0.1:0\"\nquery = \"127.0.0.1:0\"\ntoken = \"{SECRET}-http\"\n[registry]\nurl = \"http://127.0.0.1:9\"\nusername = \
         \"crawl\"\npassword = \"{SECRET}-registry\"\n[kafka]\n\"bootstrap.servers\" = \"127.0.0.1:9\"\n\"security.protocol\" = \
         \"sasl_plaintext\"\n\"sasl.mechanism\" = \"PLAIN\"\n\"sasl.username\" = \"{SECRET}-user\"\n\"sasl.password\" = \
         {{ env = \"OURS\" }}\n\"ssl.key.password\" = {{ file = \"{}\" }}\n\"ssl.keystore.password\" = \
         \"{SECRET}-written\"\n",
        dir.0.join("secret").display()
    );
    fs::write(dir.0.join("samestory.toml"), &settings).unwrap();
    let command = || {
        let mut command = dir.command();
        command.env("OURS", format!("{SECRET}-env")).env("SAMESTORY_LOG", "trace");
        command.env("SAMESTORY__KAFKA__SASL_OAUTHBEARER_CONFIG", format!("{SECRET}-variable"));
        command
    };
    let mut printed_text = String::new();
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
        printed_text += &text(&command().args(arguments).output().unwrap());
    }
    // librdkafka's messages on an unknown or rejected property contain the value.
    for (property, value) in [("SASL_PASWORD", "hunter2-typo"), ("SOCKET_TIMEOUT_MS", "hunter2-number")] {
        for arguments in [&["config", "check"][..], &["run"]] {
            let variable = format!("SAMESTORY__KAFKA__{property}");
            let refused = command().env(variable, value).args(arguments).output().unwrap();
            let key = property.to_lowercase().replace('_', ".");
            assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
            assert!(text(&refused).contains(&key), "{}", text(&refused));
            printed_text += &text(&refused);
        }
    }
    let child = command().arg("run").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    let ended = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(ended.success());
    printed_text += &text(&child.wait_with_output().unwrap());
    // A syntax error right at the secret.
    fs::write(dir.0.join("samestory.toml"), settings.replace("-written\"", "-written")).unwrap();
    let broken = command().args(["config", "check"]).output().unwrap();
    assert_eq!(broken.status.code(), Some(2));
    printed_text += &text(&broken);
    assert!(
        printed_text.contains("broker unreachable") && printed_text.contains("bootstrap.servers"),
        "{printed_text}"
    );
    assert!(!printed_text.contains(SECRET), "{printed_text}");
}
