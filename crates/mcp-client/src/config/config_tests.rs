use secrecy::ExposeSecret;
use serde_json::json;

use super::*;

/// Returns the configuration of a server as JSON, with its secrets.
fn shown(server: &ServerConfig) -> Value {
    let secrets: serde_json::Map<_, _> = server
        .transport
        .env_or_headers()
        .iter()
        .map(|(name, value)| (name.clone(), value.expose_secret().into()))
        .collect();
    let transport = match &server.transport {
        ServerTransport::Stdio {
            command, args, cwd, ..
        } => json!({"command": command, "args": args, "env": secrets, "cwd": cwd}),
        ServerTransport::StreamableHttp { url, .. } => json!({"url": url, "headers": secrets}),
        ServerTransport::Unusable { reason } => json!({"unusable": reason}),
    };
    json!({
        "name": server.name,
        "transport": transport,
        "connect_timeout": server.connect_timeout.as_secs_f64(),
        "call_timeout": server.call_timeout.map(|limit| limit.as_secs_f64()),
        "allowed_tools": server.allowed_tools,
        "exclude_tools": server.exclude_tools,
        "protocol_version": server.protocol_version,
        "required": server.required,
        "sequential": server.sequential,
    })
}

fn all(servers: &[ServerConfig]) -> Vec<Value> {
    servers.iter().map(shown).collect()
}

#[test]
fn our_own_form_with_everything_in_it() {
    let value = json!({
        "crm": {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "crm", 8080, true],
            "env": {"TOKEN": "t", "PORT": 8080, "DEBUG": false},
            "cwd": "/srv/crm",
            "timeout": "90s",
            "connect_timeout": "5s",
            "allowed_tools": ["find", "update"],
            "exclude_tools": ["update"],
            "protocol_version": "2025-11-25",
            "required": true,
            "sequential": true,
        },
        "web": {
            "type": "streamable-http",
            "url": "https://example.org/mcp",
            "headers": {"X-Team": "a"},
            "authorization": "Bearer t",
            "timeout": 1.5,
        },
        "short": {"command": "server"},
        "renamed": {"name": "other", "url": "http://localhost:1/mcp"},
    });
    insta::assert_json_snapshot!(all(&parse_mcp_servers(&value).unwrap()));
}

#[test]
fn a_list_is_the_same_as_a_map() {
    let map = json!({"a": {"command": "x"}, "b": {"url": "http://h/"}});
    let list = json!([{"name": "a", "command": "x"}, {"name": "b", "url": "http://h/"}]);
    let (map, list) = (
        parse_mcp_servers(&map).unwrap(),
        parse_mcp_servers(&list).unwrap(),
    );
    assert_eq!(all(&map), all(&list));
}

#[test]
fn files_of_other_hosts_are_read_as_they_are() {
    let claude_desktop = json!({
        "globalShortcut": "Ctrl+Space",
        "mcpServers": {
            "filesystem": {
                "command": "npx",
                "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"],
                "env": {"A": "1"},
                "alwaysAllow": ["read_file"],
                "timeout": 60000,
            },
            "off": {"command": "x", "disabled": true},
        },
    });
    let vs_code = json!({
        "inputs": [],
        "servers": {
            "github": {"type": "http", "url": "https://example.org/mcp/", "headers": {"X": "y"}},
            "local": {"type": "stdio", "command": "node", "args": ["s.js"], "envFile": ".env"},
        },
    });
    let vs_code_settings = json!({"mcp": {"servers": {"a": {"command": "x", "args": null}}}});
    let list = json!([
        {"id": "kg", "name": "Knowledge graph", "enabled": true, "transport": "stdio",
         "command": "uvx", "args": ["kg"]},
        {"id": "off", "name": "Off", "enabled": false, "transport": "stdio", "command": "x"},
        {"name": "web", "transport": "streamable_http", "url": "http://localhost:1/mcp"},
    ]);
    let list_below_a_key = json!({"servers": [{"id": 7, "command": "x"}]});
    let several = json!({
        "mcp_servers": {"a": {"command": "x", "required": true}},
        "mcpServers": {"b": {"command": "y"}},
    });
    let read: serde_json::Map<_, _> = [
        ("claude_desktop", claude_desktop),
        ("vs_code", vs_code),
        ("vs_code_settings", vs_code_settings),
        ("list", list),
        ("list_below_a_key", list_below_a_key),
        ("several", several),
    ]
    .into_iter()
    .map(|(form, document)| {
        let servers = parse_config_document(&document).unwrap();
        (form.to_owned(), all(&servers).into())
    })
    .collect();
    insta::assert_json_snapshot!(read);
}

#[test]
fn times_are_seconds_or_text_with_a_unit() {
    for (written, seconds) in [
        (json!(30), Some(30.0)),
        (json!(0.25), Some(0.25)),
        (json!("30"), Some(30.0)),
        (json!("1.5s"), Some(1.5)),
        (json!("500 ms"), Some(0.5)),
        (json!(" 2m "), Some(120.0)),
        (json!("1h"), Some(3600.0)),
        (json!(0), None),
        (json!(-1), None),
        (json!("-1s"), None),
        (json!("soon"), None),
        (json!("1 day"), None),
        (json!("1.2.3s"), None),
        (json!(1e300), None),
        (json!([1]), None),
    ] {
        let value = json!({"s": {"command": "x", "timeout": written}});
        let read =
            parse_mcp_servers(&value).map(|servers| servers[0].call_timeout.unwrap().as_secs_f64());
        if let Some(seconds) = seconds {
            assert_eq!(read, Ok(seconds), "{written}");
        } else {
            let error = read.unwrap_err().to_string();
            assert!(error.contains("must be a positive duration"), "{error}");
        }
    }
}

#[test]
fn our_keys_and_known_filters_count_in_the_forms_of_other_hosts() {
    let document = json!({"mcpServers": {
        "ours": {"command": "x", "allowed_tools": ["a", "b"], "exclude_tools": ["b"], "timeout": 60,
                 "connect_timeout": "2m", "required": true, "sequential": true,
                 "protocol_version": "2025-06-18"},
        "gemini_cli": {"httpUrl": "http://h/mcp", "url": "http://h/sse", "timeout": 30000,
                       "includeTools": ["a", "b"], "excludeTools": ["b"], "trust": true},
        "codex": {"command": "x", "enabled_tools": ["a", "b"], "disabled_tools": ["b"]},
        "windsurf": {"serverUrl": "http://h/mcp", "disabledTools": ["b"]},
        "copilot": {"command": "x", "tools": ["a"]},
        "copilot_with_all": {"command": "x", "tools": ["*"]},
        "several": {"command": "x", "tools": ["a", "b"], "includeTools": ["b", "c"],
                    "exclude_tools": ["d"], "disabledTools": ["e"]},
        "cline": {"command": "x", "autoApprove": ["a"], "alwaysAllow": ["a"], "timeout": "3600",
                  "autoApproveTools": ["a"], "allowed_tools": null, "timeoutOfNobody": 5},
    }});
    insta::assert_json_snapshot!(all(&parse_config_document(&document).unwrap()));
}

/// The reasons are shown to a person.
#[test]
fn one_bad_server_of_another_host_hides_no_other() {
    let good = json!({"command": "x"});
    let bad = [
        json!("npx server"),
        json!({"args": []}),
        json!({"command": 5}),
        json!({"command": "x", "url": "http://h/"}),
        json!({"type": "sse", "url": "http://h/sse", "required": true}),
        json!({"type": "websocket", "url": "ws://h/"}),
        json!({"serverUrl": "h/mcp"}),
        json!({"command": "x", "timeout": 0}),
        json!({"command": "x", "required": "yes"}),
        json!({"command": "x", "tools": {"a": {"enabled": false}}}),
        json!({"command": "x", "disabledTools": "all"}),
        json!({"command": "x", "toolFilter": {"allow": ["a"]}}),
        json!({"command": "x", "tool_configuration": {"enabled": false}}),
        json!({"command": "x", "includeTools": ["navigate_*"]}),
        json!({"command": "x", "env": {"K": "a ${input:tok}"}}),
        json!({"command": "x", "args": ["-p", "${config:editor.port}"]}),
        json!({"url": "${command:address}"}),
    ];
    let shown = bad.map(|bad| {
        let document = json!({"servers": {"bad": bad, "good": good}});
        let servers = parse_config_document(&document).unwrap();
        assert_eq!(servers.len(), 2, "{document}");
        assert!(servers[1].transport.is_stdio());
        let ServerTransport::Unusable { reason } = &servers[0].transport else {
            panic!("{document}");
        };
        assert_eq!(servers[0].required, bad["required"] == json!(true));
        json!({"server": bad.to_string(), "reason": reason})
    });
    insta::assert_json_snapshot!(shown);
}

#[test]
fn a_server_of_another_host_can_be_marked_as_unusable() {
    let server = || json!({"name": "a", "command": "x", "required": true});
    let other = || json!({"name": "b", "command": "y"});
    for document in [
        json!({"mcpServers": {"a": server(), "b": other()}}),
        json!({"servers": {"a": server(), "b": other()}}),
        json!({"mcp": {"servers": {"a": server(), "b": other()}}}),
        json!([server(), other()]),
    ] {
        let mut marked = document.clone();
        let mut servers = other_host_servers_mut(&mut marked);
        assert_eq!(servers.len(), 2, "{document}");
        mark_server_unusable(servers[0], "the variable `K` is not set");
        let servers = parse_config_document(&marked).unwrap();
        let ServerTransport::Unusable { reason } = &servers[0].transport else {
            panic!("{document}");
        };
        assert!(
            reason.ends_with("`: the variable `K` is not set"),
            "{reason}"
        );
        assert!(servers[0].required);
        assert!(servers[1].transport.is_stdio());
        // No configuration file can contain this mark.
        drop_unused_parts(&mut marked);
        assert!(
            parse_config_document(&marked).unwrap()[0]
                .transport
                .is_stdio()
        );
    }
    let mut ours = json!({"mcp_servers": {"a": {"command": "x"}}});
    assert!(other_host_servers_mut(&mut ours).is_empty());
}

#[test]
fn what_has_no_effect_in_a_server_of_another_host_is_a_warning() {
    let document = json!({"mcpServers": {
        "a": {"url": "http://h/mcp", "headersHelper": "/bin/token --secret-1"},
        "b": {"url": "http://h/mcp", "headersHelper": null},
        "c": {"command": "x", "envFile": ".env"},
    }});
    let servers = parse_config_document(&document).unwrap();
    assert_eq!(
        servers[0].warnings,
        [
            "`mcpServers.a.headersHelper` is not supported: set the headers that this command prints \
             under `headers`"
        ]
    );
    assert!(servers[1].warnings.is_empty());
    assert_eq!(
        servers[2].warnings,
        ["`mcpServers.c.envFile` is not supported: set the variables of that file under `env`"]
    );
}

#[test]
fn of_another_hosts_document_only_its_servers_are_selected() {
    let server = json!({
        "command": "${workspaceFolder}/s",
        "args": ["${A}", "${input:tok}", "$${input:tok}"],
        "env": {"K": "${config:k}"},
        "disabledTools": ["a"], "toolFilter": {}, "timeout": 5, "envFile": "${workspaceFolder}/.env",
    });
    let selected = {
        let mut server = server.clone();
        server["args"] = json!(["${A}", "$${input:tok}", "$${input:tok}"]);
        server["env"]["K"] = "$${config:k}".into();
        server
    };
    let with_more = {
        let mut server = server;
        server["headersHelper"] = "echo ${TOKEN}".into();
        server["dev"] = "${what}".into();
        server["disabled"] = false.into();
        server
    };
    let selected = {
        let mut server = selected;
        server["headersHelper"] = true.into();
        server["disabled"] = false.into();
        server
    };
    let off = json!({"disabled": true, "command": "x", "env": {"K": "${NOT_SET}"}});
    let off_too = json!({"name": "off", "enabled": false, "command": "${NOT_SET}"});
    for key in ["mcpServers", "servers"] {
        let mut document = json!({
            "inputs": [{"id": "tok", "description": "${what}"}],
            "mcp": "${foo bar}",
            key: {"on": with_more, "off": off, "odd": "text"},
        });
        let mut with_others = document.clone();
        let servers = json!({"on": selected, "odd": "text"});
        drop_unused_parts(&mut document);
        assert_eq!(document, json!({key: servers}));
        let once = document.clone();
        drop_unused_parts(&mut document);
        assert_eq!(document, once);

        prune_server_entries(&mut with_others);
        assert_eq!(with_others[key], servers);
        assert_eq!(with_others["mcp"], "${foo bar}");
        assert_eq!(with_others["inputs"][0]["id"], "tok");
    }

    let mut settings = json!({"editor": "${x", "mcp": {"inputs": "${y", "servers": {"off": off}}});
    drop_unused_parts(&mut settings);
    assert_eq!(settings, json!({"mcp": {"servers": {}}}));
    assert!(parse_config_document(&settings).unwrap().is_empty());

    let mut list = json!([with_more, off_too]);
    drop_unused_parts(&mut list);
    assert_eq!(list, json!([selected]));

    let ours = json!({"mcp_servers": {"a": {"command": "${A}", "comand": "${input:a}"}}});
    let mut same = ours.clone();
    drop_unused_parts(&mut same);
    assert_eq!(same, ours);
    for other in [json!(null), json!("${A}"), json!(5)] {
        let mut same = other.clone();
        drop_unused_parts(&mut same);
        assert_eq!(same, other);
    }
}

/// Every message names the place and the fault, and says what the user can do.
#[test]
fn errors_say_where_what_and_what_to_do() {
    let ours = [
        json!({"crm": {"comand": "x"}}),
        json!({"crm": {"command": "x", "exclude": []}}),
        json!({"crm": {"command": "x", "banana": 1}}),
        json!([{"name": "a", "command": "x", "Args": []}]),
        json!("npx server"),
        json!({"crm": "npx server"}),
        json!({"crm": {"command": ["npx", "server"]}}),
        json!({"crm": {"command": "x", "args": "-y server"}}),
        json!({"crm": {"command": "x", "args": ["-y", null]}}),
        json!({"crm": {"command": "x", "env": {"A": {"b": 1}}}}),
        json!({"crm": {"command": "x", "required": "yes"}}),
        json!({"crm": {"command": "x", "timeout": "soon"}}),
        json!({"crm": {}}),
        json!({"crm": {"command": "x", "url": "http://h/"}}),
        json!({"crm": {"type": "stdio", "url": "http://h/"}}),
        json!({"crm": {"type": "streamable-http", "command": "x"}}),
        json!({"crm": {"type": "streamable-htp", "url": "http://h/"}}),
        json!({"crm": {"type": "carrier pigeon", "command": "x"}}),
        json!({"crm": {"type": "sse", "url": "http://h/sse"}}),
        json!({"crm": {"command": "x", "headers": {}}}),
        json!({"crm": {"url": "http://h/", "env": {}}}),
        json!({"crm": {"url": "localhost:8080"}}),
        json!({"crm": {"url": "ftp://h/mcp"}}),
        json!({"crm": {"url": "http://"}}),
        json!({"crm": {"url": "http://h/", "authorization": "a", "headers": {"authorization": "b"}}}),
        json!({"crm": {"command": "x", "protocol_version": "2025-01-01"}}),
        json!([{"command": "x"}]),
        json!({"": {"command": "x"}}),
        json!([{"name": "a", "command": "x"}, {"name": "a", "command": "y"}]),
    ]
    .map(|value| {
        let error = parse_mcp_servers(&value).unwrap_err().to_string();
        json!({"ours": value.to_string(), "error": error})
    });
    let documents = [
        json!({}),
        json!("text"),
        json!({"mcpServers": 5}),
        json!([{"command": "x"}]),
        json!([{"id": {}, "command": "x"}]),
        json!({"mcp_servers": {"a": {"command": "x"}}, "mcpServers": {"a": {"command": "y"}}}),
    ]
    .map(|value| {
        let error = parse_config_document(&value).unwrap_err().to_string();
        json!({"document": value.to_string(), "error": error})
    });
    insta::assert_json_snapshot!([&ours[..], &documents[..]].concat());
}

#[test]
fn debug_text_and_description_show_no_secrets() {
    let value = json!({
        "a": {"command": "x", "args": ["--token", "secret-1"], "env": {"KEY": "secret-2"}},
        "b": {"url": "https://u:secret-3@h/mcp?k=secret-4", "headers": {"X": "secret-5"},
              "authorization": "Bearer secret-6"},
    });
    let mut servers = parse_mcp_servers(&value).unwrap();
    let mut third = ServerConfig::http("c", "https://h/secret-7/mcp");
    third.secrets.push("secret-7".into());
    let mut fourth = ServerConfig::stdio("d", "x", ["secret-8"]);
    fourth.secrets.push("secret-8".into());
    servers.extend([third, fourth]);
    let text = format!("{servers:#?}");
    assert!(!text.contains("secret-"), "{text}");
    assert!(
        text.contains("KEY") && text.contains("Authorization"),
        "{text}"
    );
    let described: Vec<String> = servers[..2]
        .iter()
        .map(|s| s.transport.describe_transport())
        .collect();
    let expected = ["stdio: x --token …", "streamable-http: https://h/mcp"];
    assert_eq!(described, expected);
}

#[test]
fn what_calls_are_allowed_is_read_in_every_form() {
    let server = json!({
        "command": "x", "idle_timeout": "20s", "max_concurrent_calls": 4,
        "tool_timeouts": {"build": "10m", "ping": 2},
    });
    let ours = parse_mcp_servers(&json!({"s": server})).unwrap();
    let theirs = parse_config_document(&json!({"mcpServers": {"s": server}})).unwrap();
    for server in [&ours[0], &theirs[0]] {
        assert_eq!(server.idle_timeout, Some(Duration::from_secs(20)));
        assert_eq!(server.max_concurrent_calls, Some(4));
        let tools = [("build", 600), ("ping", 2)];
        let tools = tools.map(|(tool, seconds)| (tool.to_owned(), Duration::from_secs(seconds)));
        assert_eq!(server.tool_timeouts, tools);
    }
    for (key, value, place) in [
        ("idle_timeout", json!(0), "s.idle_timeout"),
        ("tool_timeouts", json!(["build"]), "s.tool_timeouts"),
        ("tool_timeouts", json!({"build": "soon"}), "s.tool_timeouts"),
        ("max_concurrent_calls", json!(0), "s.max_concurrent_calls"),
        ("max_concurrent_calls", json!(1.5), "s.max_concurrent_calls"),
    ] {
        let error = parse_mcp_servers(&json!({"s": {"command": "x", key: value}})).unwrap_err();
        assert!(error.to_string().contains(place), "{error}");
    }
}

#[test]
fn what_a_server_may_ask_is_said_per_server() {
    let configs = parse_mcp_servers(&json!({
        "a": {"command": "a", "sampling": true, "roots": ["/srv/data"], "log_level": "warning"},
        "b": {"command": "b", "sampling": {"calls": 3}},
        "c": {"command": "c", "sampling": false},
    }))
    .unwrap();
    let usual = SamplingLimits::default();
    assert_eq!(configs[0].sampling, Some(usual));
    let folder = root_from_path(std::path::Path::new("/srv/data"));
    assert_eq!(configs[0].roots, folder.map(|folder| vec![folder]));
    assert_eq!(configs[0].log_level, LogLevel::Warning);
    let expected = Some(SamplingLimits { calls: 3, ..usual });
    assert_eq!(configs[1].sampling, expected);
    assert_eq!((configs[2].sampling, &configs[2].roots), (None, &None));

    for (wrong, named) in [
        (json!({"sampling": {"cals": 3}}), "a.sampling"),
        (json!({"roots": ["data"]}), "a.roots"),
        (json!({"log_level": "loud"}), "a.log_level"),
    ] {
        let mut server = json!({"command": "a"});
        server
            .as_object_mut()
            .unwrap()
            .extend(wrong.as_object().unwrap().clone());
        let error = parse_mcp_servers(&json!({"a": server}))
            .unwrap_err()
            .to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn secrets_of_headers_and_urls_are_hidden() {
    let mut http = ServerConfig::http("a", "https://u:long-password@h/?api=query-secret");
    if let ServerTransport::StreamableHttp { headers, .. } = &mut http.transport {
        headers.push(("Authorization".into(), "Bearer tok-12345678".into()));
    }
    let text = "got tok-12345678, long-password and query-secret on 8080";
    let expected = "got [redacted], [redacted] and [redacted] on 8080";
    assert_eq!(http.server_redactor().redact_known(text), expected);
}

#[test]
fn further_secrets_and_those_of_arguments_are_hidden() {
    let args = [
        "--api-key",
        "sk-12345678",
        "--dsn=db://u:pass-word-1@h/",
        "plain-argument",
    ];
    let mut config = ServerConfig::stdio("a", "c", args);
    config.secrets = vec!["further secret".into(), "short".into()];
    config.redactor.add_secret("of-a-client");
    assert_eq!(
        config.server_redactor().redact_known(
            "sk-12345678 pass-word-1 further secret http://h/further%20secret/ of-a-client short \
             plain-argument"
        ),
        "[redacted] [redacted] [redacted] http://h/[redacted]/ [redacted] short plain-argument"
    );
}
