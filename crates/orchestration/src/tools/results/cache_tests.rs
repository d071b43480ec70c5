use super::*;
use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::{ToolAnnotations, ToolOrigin};

fn tool(server: &str, name: &str) -> Arc<ToolDefinition> {
    let mut tool = ToolDefinition::new(name, "Looks up.", json!({"type": "object"}));
    tool.origin = Some(ToolOrigin {
        server: server.to_owned(),
        tool: name.to_owned(),
    });
    tool.annotations.read_only = Some(true);
    Arc::new(tool)
}

fn input(n: u64) -> JsonObject {
    JsonObject::from_iter([("n".to_owned(), n.into())])
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn cache(max_entries: usize, max_bytes: usize) -> ResultCache {
    ResultCache::new(CacheOptions {
        lifetime: Duration::from_mins(1),
        max_entries,
        max_bytes,
    })
}

fn key(cache: &ResultCache, tool: &Arc<ToolDefinition>, n: u64) -> CacheKey {
    cache
        .create_key(&Principal::default(), tool, &input(n))
        .unwrap()
}

fn len(cache: &ResultCache) -> usize {
    cache.lock_entries().by_key.len()
}

#[test]
fn a_result_expires_after_its_lifetime() {
    let (cache, tool) = (cache(9, 1 << 20), tool("s", "t"));
    let key = key(&cache, &tool, 1);
    assert_eq!(cache.get_result(&key, at(0)), None);
    let output = ToolOutput::text("one");
    assert!(cache.store_result(key, &output, at(100)));
    assert_eq!(cache.get_result(&key, at(159)), Some(output.clone()));
    assert_eq!(cache.get_result(&key, at(160)), None);
    assert_eq!(len(&cache), 0);
    // The clock was set back, so the age of the entry is unknown.
    cache.store_result(key, &output, at(100));
    assert_eq!(cache.get_result(&key, at(99)), None);
}

#[test]
fn only_read_only_tools_have_keys() {
    for read_only in [None, Some(false)] {
        let mut tool = ToolDefinition::new("t", "", json!({}));
        tool.annotations = ToolAnnotations {
            read_only,
            idempotent: Some(true),
            ..ToolAnnotations::default()
        };
        let key =
            ResultCache::default().create_key(&Principal::default(), &Arc::new(tool), &input(1));
        assert_eq!(key, None);
    }
}

#[test]
fn errors_and_large_results_are_not_stored() {
    let (cache, tool) = (cache(9, 2_000), tool("s", "t"));
    let mut error = ToolOutput::text("no");
    error.is_error = true;
    assert!(!cache.store_result(key(&cache, &tool, 1), &error, at(0)));
    let big = ToolOutput::text("x".repeat(2_000));
    assert!(!cache.store_result(key(&cache, &tool, 1), &big, at(0)));
    assert!(!self::cache(0, 2_000).store_result(
        key(&cache, &tool, 1),
        &ToolOutput::text("x"),
        at(0)
    ));
}

#[test]
fn the_key_depends_on_principal_tool_server_definition_and_input() {
    let cache = ResultCache::default();
    let ada = Principal {
        tenant: "a".into(),
        user: "bc".into(),
    };
    let bob = Principal {
        tenant: "ab".into(),
        user: "c".into(),
    };
    let mut changed = (*tool("s", "t")).clone();
    changed.description.push('!');
    let calls = [
        (&ada, tool("s", "t"), input(1)),
        (&bob, tool("s", "t"), input(1)),
        (&ada, tool("s", "u"), input(1)),
        (&ada, tool("r", "t"), input(1)),
        (&ada, Arc::new(changed), input(1)),
        (&ada, tool("s", "t"), input(2)),
    ];
    let keys: Vec<_> = calls
        .iter()
        .map(|(who, tool, input)| cache.create_key(who, tool, input).unwrap())
        .collect();
    let different: std::collections::HashSet<_> = keys.iter().collect();
    assert_eq!(different.len(), keys.len());
    // An equal definition and an equal input in another notation have the same key.
    let input = JsonObject::from_iter([("n".to_owned(), json!(1.0))]);
    let again = cache.create_key(&ada, &tool("s", "t"), &input).unwrap();
    assert_eq!(again, keys[0]);
}

#[test]
fn the_least_recently_used_result_is_removed_first() {
    let (cache, tool) = (cache(3, 1 << 20), tool("s", "t"));
    for n in 0..3 {
        cache.store_result(key(&cache, &tool, n), &ToolOutput::text("x"), at(0));
    }
    assert!(cache.get_result(&key(&cache, &tool, 0), at(1)).is_some());
    cache.store_result(key(&cache, &tool, 3), &ToolOutput::text("x"), at(1));
    let stored: Vec<_> = (0..4)
        .map(|n| cache.get_result(&key(&cache, &tool, n), at(1)).is_some())
        .collect();
    assert_eq!(stored, [true, false, true, true]);
}

#[test]
fn a_change_removes_the_results_of_its_server_and_rejects_those_read_before() {
    let cache = cache(9, 9_000);
    let (crm, shop) = (tool("crm", "look"), tool("shop", "look"));
    let output = ToolOutput::text("as it was");
    cache.store_result(key(&cache, &crm, 1), &output, at(0));
    let (old, other) = (key(&cache, &crm, 2), key(&cache, &shop, 1));
    cache.invalidate_server("crm");
    assert_eq!(cache.get_result(&key(&cache, &crm, 1), at(0)), None);
    cache.store_result(old, &output, at(0));
    assert_eq!(
        cache.get_result(&key(&cache, &crm, 2), at(0)),
        None,
        "it may be older"
    );
    cache.store_result(other, &output, at(0));
    assert!(
        cache.get_result(&key(&cache, &shop, 1), at(0)).is_some(),
        "another server"
    );
    cache.store_result(key(&cache, &crm, 1), &output, at(0));
    assert!(cache.get_result(&key(&cache, &crm, 1), at(0)).is_some());
}

#[test]
fn results_and_inputs_are_not_formatted() {
    let (cache, tool) = (ResultCache::default(), tool("s", "t"));
    let input = JsonObject::from_iter([("token".to_owned(), "secret-in".into())]);
    let key = cache
        .create_key(&Principal::default(), &tool, &input)
        .unwrap();
    cache.store_result(key, &ToolOutput::text("secret-out"), at(0));
    let printed = format!("{cache:?} {key:?}");
    assert!(!printed.contains("secret"), "{printed}");
}

proptest! {
    #[test]
    fn the_limits_hold_and_results_are_unchanged(
        steps in prop::collection::vec((0_u64..12, 0_usize..600, any::<bool>(), 0_i64..30), 1..80),
    ) {
        let (cache, tool) = (cache(5, 1_500), tool("s", "t"));
        let mut truth: HashMap<u64, (ToolOutput, i64)> = HashMap::new();
        let mut now = 0;
        for (n, size, put, later) in steps {
            now += later;
            let key = key(&cache, &tool, n);
            if put {
                let output = ToolOutput::text("x".repeat(size));
                if cache.store_result(key, &output, at(now)) {
                    truth.insert(n, (output, now));
                }
            } else if let Some(got) = cache.get_result(&key, at(now)) {
                let (output, since) = &truth[&n];
                prop_assert_eq!(&got, output);
                prop_assert!(now - since < 60);
            }
            let entries = cache.lock_entries();
            let bytes: usize = entries.by_key.values().map(|entry| entry.bytes).sum();
            prop_assert!(entries.by_key.len() <= 5 && bytes <= 1_500);
        }
    }
}
