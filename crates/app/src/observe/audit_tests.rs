use jiff::Timestamp;
use switchboard_domain::ModelId;
use switchboard_orchestration::{RunEventKind, observe::audit::AuditRecord};

use super::*;
use crate::config::{SessionsConfig, StoreLocation};

fn configured(audit: AuditLocation) -> Config {
    Config {
        audit: Some(audit),
        ..Config::default()
    }
}

fn started(run_id: &str) -> RunEvent {
    RunEvent {
        run_id: run_id.into(),
        seq: 1,
        time: Timestamp::UNIX_EPOCH,
        kind: RunEventKind::RunStarted {
            model: ModelId::new("acme", "large"),
            resumed: false,
        },
    }
}

#[test]
fn the_variable_overrides_files_and_files_override_the_default() {
    let mut environment = Environment::default();
    let config = Config::default();
    let state = |is_configured| Some(("/state/audit.jsonl".into(), is_configured));
    assert_eq!(find_audit_path(&config, &environment), None);
    environment.state_dir = Some("/state".into());
    assert_eq!(find_audit_path(&config, &environment), state(false));
    let off = configured(AuditLocation::Off);
    assert_eq!(find_audit_path(&off, &environment), None);
    let file = configured(AuditLocation::File("/a/b".into()));
    let expected = Some(("/a/b".into(), true));
    assert_eq!(find_audit_path(&file, &environment), expected);
    for (value, expected) in [
        ("off", None),
        ("on", state(true)),
        ("my.jsonl", Some(("/project/my.jsonl".into(), true))),
    ] {
        let mut environment = Environment::from_variables([("SWITCHBOARD_AUDIT", value)]);
        environment.state_dir = Some("/state".into());
        environment.working_dir = "/project".into();
        assert_eq!(find_audit_path(&file, &environment), expected);
    }
}

#[tokio::test]
async fn several_processes_append_records_to_an_existing_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/audit.jsonl");
    let config = configured(AuditLocation::File(path.clone()));
    for _ in 0..2 {
        let environment = Environment::default();
        let one = AuditLog::open_audit(&config, &environment, None).unwrap();
        let other = AuditLog::open_audit(&config, &environment, None).unwrap();
        let mut runs = [
            one.create_run_recorder(Some("s-1".into()), None),
            one.create_run_recorder(None, None),
            other.create_run_recorder(None, None),
        ];
        for _ in 0..50 {
            for (n, run) in runs.iter_mut().enumerate() {
                run.record_event(&started(&format!("run-{n}"))).await;
            }
        }
        // The audit log is flushed while runs still write to it.
        one.flush_audit_log().await;
        other.flush_audit_log().await;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let records: Vec<AuditRecord> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 300);
    assert!(text.ends_with('\n'));
    let of_session = records.iter().filter(|record| record.session_id.is_some());
    assert!(of_session.clone().all(|record| record.run_id == "run-0"));
    assert_eq!(of_session.count(), 100);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn unwritten_records_are_counted_and_reported_once() {
    let config = configured(AuditLocation::File("/dev/full".into()));
    let folder = tempfile::tempdir().unwrap();
    let sessions = SessionsConfig {
        store: Some(StoreLocation::File(folder.path().join("sessions.db"))),
        ..SessionsConfig::default()
    };
    let config = Config { sessions, ..config };
    let environment = Environment::default();
    let opened = OpenSessionStore::open_and_prune(&config, &environment).await;
    let sessions = opened.unwrap();
    let log = AuditLog::open_audit(&config, &environment, Some(&sessions)).unwrap();
    sessions.close_store().await;
    let mut run = log.create_run_recorder(None, None);
    for _ in 0..3 {
        run.record_event(&started("run-1")).await;
    }
    let file = log.file.as_ref().unwrap();
    let why = file.sync_to_disk().unwrap_err();
    assert!(
        why.starts_with("3 records were not written: No space"),
        "{why}"
    );
    assert_eq!(file.sync_to_disk(), Ok(()));
    let queue = log.store.as_ref().unwrap();
    queue.write_waiting().await;
    let why = queue.lost.take_lost().unwrap_err();
    assert!(
        why.starts_with("3 records were not written: the session store failed"),
        "{why}"
    );
    assert_eq!(queue.lost.take_lost(), Ok(()));
}

#[tokio::test]
async fn a_named_file_that_cannot_be_written_is_an_error_and_a_default_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    let named = configured(AuditLocation::File(in_the_way.join("audit.jsonl")));
    let error = AuditLog::open_audit(&named, &Environment::default(), None).unwrap_err();
    assert!(error.to_string().contains("audit: false"), "{error}");
    let mut environment = Environment::default();
    environment.state_dir = Some(in_the_way);
    let log = AuditLog::open_audit(&Config::default(), &environment, None).unwrap();
    let mut recorder = log.create_run_recorder(None, None);
    recorder.record_event(&started("run-1")).await;
    log.flush_audit_log().await;
}
