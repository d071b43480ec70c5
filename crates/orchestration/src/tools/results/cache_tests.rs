use super::*;
use crate::tools::arguments::test_support::{json_object, shuffled};
use proptest::prelude::*;
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
    cache.key(&Principal::default(), tool, &input(n)).unwrap()
}

#[test]
fn a_result_expires_after_its_lifetime() {
    let (cache, tool) = (cache(9, 1 << 20), tool("s", "t"));
    let key = key(&cache, &tool, 1);
    assert_eq!(cache.get(&key, at(0)), None);
    let output = ToolOutput::text("one");
    assert!(cache.put(key.clone(), &output, at(100)));
    assert_eq!(cache.get(&key, at(100)), Some(output.clone()));
    assert_eq!(cache.get(&key, at(159)), Some(output.clone()));
    assert_eq!(cache.get(&key, at(160)), None);
    assert!(cache.is_empty());
    // A clock that was set back makes the age unknown.
    cache.put(key.clone(), &output, at(100));
    assert_eq!(cache.get(&key, at(99)), None);
}

#[test]
fn only_read_only_tools_have_keys() {
    let cache = ResultCache::default();
    for read_only in [None, Some(false)] {
        let mut tool = ToolDefinition::new("t", "", json!({}));
        tool.annotations = ToolAnnotations {
            read_only,
            idempotent: Some(true),
            ..ToolAnnotations::default()
        };
        let key = cache.key(&Principal::default(), &Arc::new(tool), &input(1));
        assert_eq!(key, None);
    }
}

#[test]
fn errors_and_large_results_are_not_stored() {
    let (cache, tool) = (cache(9, 2_000), tool("s", "t"));
    let mut error = ToolOutput::text("no");
    error.is_error = true;
    assert!(!cache.put(key(&cache, &tool, 1), &error, at(0)));
    let big = ToolOutput::text("x".repeat(2_000));
    assert!(!cache.put(key(&cache, &tool, 1), &big, at(0)));
    assert!(!self::cache(0, 2_000).put(key(&cache, &tool, 1), &ToolOutput::text("x"), at(0)));
    assert!(cache.is_empty());
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
        (&ada, tool("s", "t"), JsonObject::new()),
    ];
    let keys: Vec<_> = calls
        .iter()
        .map(|(who, tool, input)| cache.key(who, tool, input).unwrap().digest)
        .collect();
    let different: std::collections::HashSet<_> = keys.iter().collect();
    assert_eq!(different.len(), keys.len());
    // The same definition, listed again.
    let again = cache.key(&ada, &tool("s", "t"), &input(1)).unwrap();
    assert_eq!(again.digest, keys[0]);
}

#[test]
fn the_least_recently_used_result_is_removed_first() {
    let (cache, tool) = (cache(3, 1 << 20), tool("s", "t"));
    for n in 0..3 {
        cache.put(key(&cache, &tool, n), &ToolOutput::text("x"), at(0));
    }
    assert!(cache.get(&key(&cache, &tool, 0), at(1)).is_some());
    cache.put(key(&cache, &tool, 3), &ToolOutput::text("x"), at(1));
    let kept: Vec<_> = (0..4)
        .map(|n| cache.get(&key(&cache, &tool, n), at(1)).is_some())
        .collect();
    assert_eq!(kept, [true, false, true, true]);
}

#[test]
fn the_results_of_one_server_can_be_removed() {
    let cache = ResultCache::default();
    let (s, r) = (tool("s", "t"), tool("r", "t"));
    for tool in [&s, &r] {
        cache.put(key(&cache, tool, 1), &ToolOutput::text("x"), at(0));
        cache.put(key(&cache, tool, 2), &ToolOutput::text("x"), at(0));
    }
    cache.invalidate("s");
    assert_eq!(cache.get(&key(&cache, &s, 1), at(0)), None);
    assert!(cache.get(&key(&cache, &r, 2), at(0)).is_some());
    assert_eq!(cache.len(), 2);
    cache.clear();
    assert!(cache.is_empty());
}

#[test]
fn a_result_that_was_read_before_a_change_is_not_stored() {
    let cache = cache(9, 9_000);
    let (crm, shop) = (tool("crm", "look"), tool("shop", "look"));
    let output = ToolOutput::text("as it was");
    let (old, other) = (key(&cache, &crm, 1), key(&cache, &shop, 1));
    cache.invalidate("crm");
    assert!(!cache.put(old, &output, at(0)), "it may be older");
    assert!(cache.put(other, &output, at(0)), "another server");
    let new = key(&cache, &crm, 1);
    assert!(cache.put(new.clone(), &output, at(0)));
    assert!(cache.get(&new, at(1)).is_some());
    cache.clear();
    assert!(!cache.put(new, &output, at(1)));
    assert!(cache.is_empty());
}

#[test]
fn results_and_inputs_are_not_formatted() {
    let (cache, tool) = (ResultCache::default(), tool("s", "t"));
    let input = JsonObject::from_iter([("token".to_owned(), "secret-in".into())]);
    let key = cache.key(&Principal::default(), &tool, &input).unwrap();
    cache.put(key.clone(), &ToolOutput::text("secret-out"), at(0));
    let printed = format!("{cache:?} {key:?}");
    assert!(!printed.contains("secret"), "{printed}");
}

#[test]
fn the_cache_is_shared_between_threads() {
    let (cache, tool) = (&ResultCache::default(), &tool("s", "t"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for n in 0..50 {
                    let key = key(cache, tool, n);
                    cache.put(key.clone(), &ToolOutput::text(format!("{n}")), at(0));
                    let got = cache.get(&key, at(0)).unwrap();
                    assert_eq!(got, ToolOutput::text(format!("{n}")), "{thread}");
                }
            });
        }
    });
    assert_eq!(cache.len(), 50);
}

proptest! {
    #[test]
    fn equal_inputs_share_a_key(object in json_object(), seed in any::<u64>()) {
        let (cache, tool) = (ResultCache::default(), tool("s", "t"));
        let who = Principal::default();
        prop_assert_eq!(
            cache.key(&who, &tool, &object),
            cache.key(&who, &tool, &shuffled(&object, seed))
        );
    }

    #[test]
    fn the_limits_hold_and_results_are_unchanged(
        steps in prop::collection::vec((0_u64..12, 0_usize..600, any::<bool>(), 0_i64..30), 1..80),
    ) {
        let (cache, tool) = (cache(5, 2_500), tool("s", "t"));
        let mut truth: HashMap<u64, (ToolOutput, i64)> = HashMap::new();
        let mut now = 0;
        for (n, size, put, later) in steps {
            now += later;
            let key = key(&cache, &tool, n);
            if put {
                let output = ToolOutput::text("x".repeat(size));
                if cache.put(key, &output, at(now)) {
                    truth.insert(n, (output, now));
                }
            } else if let Some(got) = cache.get(&key, at(now)) {
                let (output, since) = &truth[&n];
                prop_assert_eq!(&got, output);
                prop_assert!(now - since < 60);
            }
            let kept = cache.lock();
            prop_assert!(kept.by_digest.len() <= 5 && kept.bytes <= 2_500);
            prop_assert_eq!(kept.by_digest.len(), kept.by_use.len());
            prop_assert_eq!(kept.bytes, kept.by_digest.values().map(|e| e.bytes).sum::<usize>());
        }
    }
}
