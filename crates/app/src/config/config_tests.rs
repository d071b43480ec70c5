use std::{fs, path::Path};

use secrecy::ExposeSecret as _;
use switchboard_mcp_client::{CircuitOptions, config::ServerTransport};
use switchboard_providers_common::{
    RetryPolicy,
    text_tool_calls::{TextCallFormat, TextCallFormats},
};
use switchboard_providers_ollama::ToolsByPrompt;

use super::{document_to_config::config_from_value, environment::Environment, *};
use crate::run_session::servers::Servers;

/// A working directory and a configuration folder, with files in them.
struct Place {
    folder: tempfile::TempDir,
    environment: Environment,
}

impl Place {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::from_variables([("KEY", "k-123"), ("NAME", "crm")]);
        environment.working_dir = folder.path().join("project");
        environment.config_dir = Some(folder.path().join("user"));
        for path in ["project", "user"] {
            fs::create_dir(folder.path().join(path)).unwrap();
        }
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self {
            folder,
            environment,
        }
    }

    fn load(&self) -> Result<Config, ConfigError> {
        load_config(&ConfigSources::default(), &self.environment)
    }

    /// Returns the error message without the path of the temporary folder, which differs between
    /// runs.
    fn error(&self, sources: &ConfigSources) -> String {
        let error = load_config(sources, &self.environment)
            .unwrap_err()
            .to_string();
        error.replace(&self.folder.path().display().to_string(), "")
    }
}

fn with_config(file: &str) -> ConfigSources {
    ConfigSources {
        config: Some(file.into()),
        ..ConfigSources::default()
    }
}

fn with_servers(file: &str) -> ConfigSources {
    ConfigSources {
        mcp_configs: vec![file.into()],
        ..ConfigSources::default()
    }
}

fn error_of(name: &str, text: &str) -> String {
    Place::with(&[(&format!("project/{name}"), text)]).error(&ConfigSources::default())
}

#[test]
fn the_same_configuration_reads_the_same_in_every_format() {
    let yaml = "
# a comment
model: litellm/large
approve: ask
max_steps: 4
temperature: 0.5
reasoning: low
tool_timeout: 2.5
startup_wait: 0.5
providers:
  litellm: {base_url: 'http://127.0.0.1:4000/v1', api_key_env: KEY, profile: litellm}
mcp_servers:
  crm: {command: crm-server, args: [--key, '${KEY}'], required: true}
";
    let toml = "
model = 'litellm/large'
approve = 'ask'
max_steps = 4
temperature = 0.5
reasoning = 'low'
tool_timeout = 2.5
startup_wait = 0.5
providers.litellm = {base_url = 'http://127.0.0.1:4000/v1', api_key_env = 'KEY', profile = 'litellm'}
[mcp_servers.crm]
command = 'crm-server'
args = ['--key', '${KEY}']
required = true
";
    let json = r#"{"model": "litellm/large", "approve": "ask", "max_steps": 4, "temperature": 0.5,
        "reasoning": "low", "tool_timeout": 2.5, "startup_wait": 0.5,
        "providers": {"litellm": {"base_url": "http://127.0.0.1:4000/v1", "api_key_env": "KEY", "profile": "litellm"}},
        "mcp_servers": [{"name": "crm", "command": "crm-server", "args": ["--key", "${KEY}"], "required": true}]}"#;
    for (name, text) in [("yaml", yaml), ("toml", toml), ("json", json)] {
        let place = Place::with(&[(&format!("project/switchboard.{name}"), text)]);
        let config = place.load().unwrap();
        assert_eq!(config.model.as_deref(), Some("litellm/large"), "{name}");
        assert_eq!(config.approve, Some(ApprovalPolicy::Ask));
        assert_eq!(config.max_steps.map(NonZeroU32::get), Some(4));
        assert_eq!(config.temperature, Some(0.5));
        assert_eq!(config.reasoning, Some(ReasoningEffort::Low));
        assert_eq!(config.tool_timeout, Some(Duration::from_millis(2500)));
        assert_eq!(config.startup_wait, Some(Duration::from_millis(500)));
        assert_eq!(config.providers.len(), 1);
        assert_eq!(config.providers[0].kind, ProviderKind::OpenAiCompatible);
        assert!(config.providers[0].profile.is_some());
        let servers = config.servers.unwrap();
        assert_eq!((servers.len(), servers[0].name.as_str()), (1, "crm"));
        assert!(servers[0].required);
        let ServerTransport::Stdio { args, .. } = &servers[0].transport else {
            panic!("{:?}", servers[0]);
        };
        assert_eq!(args, &["--key", "k-123"]);
    }
}

#[test]
fn project_settings_override_user_settings() {
    let place = Place::with(&[
        (
            "user/switchboard.yaml",
            "model: openai/a\nmax_steps: 9\nmcp_servers:\n  \
             crm: {command: old, args: [x]}\n  wiki: {url: 'http://127.0.0.1:1/mcp'}\n",
        ),
        (
            "project/switchboard.toml",
            "model = 'anthropic/b'\n[mcp_servers.crm]\ncommand = 'new'\n",
        ),
        (
            "project/mcp.json",
            r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files"]}}}"#,
        ),
    ]);
    let config = load_config(&with_servers("mcp.json"), &place.environment).unwrap();
    assert_eq!(config.model.as_deref(), Some("anthropic/b"));
    assert_eq!(config.max_steps.map(NonZeroU32::get), Some(9));
    assert_eq!(config.files.len(), 3);
    let servers = config.servers.unwrap();
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["crm", "wiki", "files"]);
    assert_eq!(servers[0].transport.describe_transport(), "stdio: new");
}

#[test]
fn a_named_file_replaces_the_project_file() {
    let place = Place::with(&[
        ("project/switchboard.yaml", "model: openai/a"),
        ("project/other.json", r#"{"max_steps": 2}"#),
    ]);
    let config = load_config(&with_config("other.json"), &place.environment).unwrap();
    assert_eq!((config.model, config.max_steps), (None, NonZeroU32::new(2)));
}

#[test]
fn text_tool_calls_are_configured_for_a_provider() {
    let text =
        "providers: {l: {base_url: 'http://a', text_calls: [fenced_json], tools_by_prompt: true}}";
    let place = Place::with(&[("project/switchboard.yaml", text)]);
    let provider = place.load().unwrap().providers.remove(0);
    let forms = TextCallFormats::from_forms(&[TextCallFormat::FencedJson]);
    assert_eq!(provider.text_calls, Some(forms));
    assert_eq!(provider.tools_by_prompt, Some(ToolsByPrompt::Always));

    let text = "providers: {ollama: {tools_by_prompt: auto}, openai: {tools_by_prompt: false}}";
    let place = Place::with(&[("project/switchboard.yaml", text)]);
    let providers = place.load().unwrap().providers;
    assert_eq!(providers[0].tools_by_prompt, Some(ToolsByPrompt::Auto));
    assert_eq!(providers[1].tools_by_prompt, Some(ToolsByPrompt::Never));
    assert_eq!(providers[1].text_calls, None);
}

#[test]
fn options_of_every_wire_are_read() {
    let text = "
providers:
  anthropic: {options: {cache: {scope: turns}, effort: high}}
  openai: {options: {strict_tools: true}}
  openai-responses: {options: {server_tools: [{type: web_search}], reasoning_summary: auto}}
  gemini: {options: {server_tools: [{type: google_search}]}}
";
    let place = Place::with(&[("project/switchboard.yaml", text)]);
    let providers = place.load().unwrap().providers;
    let options: Vec<AdapterOptions> = providers
        .into_iter()
        .filter_map(|it| it.adapter_options)
        .collect();
    let [
        AdapterOptions::Anthropic(anthropic),
        AdapterOptions::Chat(chat),
        AdapterOptions::Responses(responses),
        AdapterOptions::Gemini(gemini),
    ] = options.as_slice()
    else {
        panic!("{options:?}");
    };
    assert!(anthropic.effort.is_some());
    assert_eq!(chat.strict_tools, Some(true));
    assert!(responses.reasoning_summary.is_some());
    assert_eq!(responses.server_tools.len(), 1);
    assert_eq!(gemini.server_tools.len(), 1);
}

#[test]
fn retries_and_circuit_breakers_are_configured() {
    let place = Place::with(&[
        (
            "user/switchboard.yaml",
            "circuit_breaker: {tool_failures: 0, pause: 0.5}",
        ),
        (
            "project/switchboard.yaml",
            "circuit_breaker: {pause: 30}\n\
             providers: {ollama: {retry: {max_attempts: 1, max_delay: 2.5}}, openai: {retry: null}}",
        ),
    ]);
    let config = place.load().unwrap();
    let policies: Vec<_> = config
        .providers
        .iter()
        .map(ProviderEntry::retry_policy)
        .collect();
    let configured = RetryPolicy {
        max_attempts: 1,
        max_delay: Duration::from_millis(2500),
        ..RetryPolicy::default()
    };
    assert_eq!(policies, [configured, RetryPolicy::default()]);
    let servers = Servers::from_config(&config, Path::new("switchboard"), &place.environment);
    let expected = CircuitOptions {
        tool_failures: 0,
        pause: Duration::from_secs(30),
        ..CircuitOptions::default()
    };
    assert_eq!(servers.options.circuits, expected);
}

#[test]
fn json_with_comments_and_trailing_commas_is_read() {
    let text = "// servers\n{\"mcpServers\": {\"a\": {\"command\": \"x\", /* no */ \"args\": [\"y\",],},},}";
    let place = Place::with(&[("project/mcp.json", text)]);
    let config = load_config(&with_servers("mcp.json"), &place.environment).unwrap();
    assert_eq!(
        config.servers.unwrap()[0].transport.describe_transport(),
        "stdio: x y"
    );
}

/// Returns the name of each server in `file`, with its transport and command or URL, or with the
/// reason why it is not used.
fn servers_in(place: &Place, file: &str) -> Vec<(String, String)> {
    let servers = load_config(&with_servers(file), &place.environment)
        .unwrap()
        .servers
        .unwrap();
    let shown = |server: &ServerConfig| match &server.transport {
        ServerTransport::Unusable { reason } => reason.clone(),
        transport => transport.describe_transport(),
    };
    let shown = servers.iter().map(|it| (it.name.clone(), shown(it)));
    let folder = place.folder.path().display().to_string();
    shown
        .map(|(name, it)| (name, it.replace(&folder, "")))
        .collect()
}

#[test]
fn an_unusable_foreign_server_does_not_affect_others() {
    let servers = serde_json::json!({
        "unset": {"command": "x", "env": {"K": "${env:NOT_SET}"}},
        "home": {"command": "${userHome}/x"},
        "name": {"command": "x", "args": ["${some name}"]},
        "open": {"command": "x", "args": ["${KEY"]},
        "file": {"command": "x", "envFile": "${workspaceFolder}/none.env"},
        "lines": {"command": "x", "envFile": "bad.env"},
        "sse": {"type": "sse", "url": "http://h/sse"},
        "good": {
            "command": "x",
            "args": ["${workspaceFolderBasename}", "${env:NAME}", "a${pathSeparator}b${/}c"],
            "envFile": ".env",
        },
        "literal": {"command": "x", "args": ["$${KEY}"]},
    });
    let form = |key: &str| serde_json::json!({ key: servers }).to_string();
    let place = Place::with(&[
        ("project/a.json", &form("mcpServers")),
        ("project/b.json", &form("servers")),
        ("project/.env", "TOKEN=secret-of-a-file\n"),
        ("project/bad.env", "secret-of-a-file\n"),
    ]);
    let separator = std::path::MAIN_SEPARATOR;
    for (file, key) in [("a.json", "mcpServers"), ("b.json", "servers")] {
        let found = servers_in(&place, file);
        let expected = [
            ("unset", "the variable `NOT_SET` is not set"),
            ("home", "the variable `userHome` is not set"),
            (
                "name",
                "`some name` in ${…} is not the name of an environment variable",
            ),
            ("open", "a ${ has no closing }"),
            (
                "file",
                "its `envFile` `/project/none.env` cannot be read: file not found",
            ),
            (
                "lines",
                "its `envFile` `/project/bad.env` cannot be read: line 1 is not of the form \
                 NAME=VALUE",
            ),
            (
                "sse",
                "is `sse`, the HTTP+SSE transport that MCP retired in 2025",
            ),
        ];
        for ((name, reason), found) in expected.into_iter().zip(&found) {
            assert_eq!(found.0, name);
            assert!(found.1.contains(reason), "{found:?}");
            assert!(found.1.contains(&format!("`{key}.{name}")), "{found:?}");
        }
        let good = format!("stdio: x project crm a{separator}b{separator}c");
        assert_eq!(found[7], ("good".to_owned(), good));
        assert_eq!(
            found[8],
            ("literal".to_owned(), "stdio: x ${KEY}".to_owned())
        );
    }
    // A configuration file of Switchboard accepts the same entries under `mcpServers`.
    let ours = Place::with(&[("project/switchboard.json", &form("mcpServers"))]);
    let config = ours.load().unwrap();
    assert_eq!(config.servers.unwrap().len(), 9);
    // Under Switchboard's own key `mcp_servers`, the same mistake is an error.
    let error = error_of(
        "switchboard.yaml",
        "mcp_servers: {a: {command: '${NOT_SET}'}}",
    );
    assert!(error.contains("`NOT_SET` is not set"), "{error}");
}

#[test]
fn variables_of_an_env_file_are_secrets() {
    let text =
        r#"{"servers": {"a": {"command": "x", "envFile": ".env", "env": {"OWN": "${NAME}"}}}}"#;
    let place = Place::with(&[
        ("project/mcp.json", text),
        ("project/.env", "TOKEN=secret-of-a-file\nOWN=other\n"),
    ]);
    let servers = load_config(&with_servers("mcp.json"), &place.environment)
        .unwrap()
        .servers
        .unwrap();
    let ServerTransport::Stdio { env, .. } = &servers[0].transport else {
        panic!("{:?}", servers[0]);
    };
    let env: Vec<_> = env
        .iter()
        .map(|(name, it)| (name.as_str(), it.expose_secret()))
        .collect();
    assert_eq!(env, [("TOKEN", "secret-of-a-file"), ("OWN", "crm")]);
    assert!(!format!("{:?}", servers[0]).contains("secret-of-a-file"));
}

#[test]
fn the_workspace_of_an_editor_file_is_its_project_folder() {
    let text = r#"{"servers": {"a": {"command": "x", "args": ["${workspaceFolder}", "${workspaceFolderBasename}"]}}}"#;
    let place = Place::with(&[("project/mcp.json", text)]);
    for folder in [".vscode", ".cursor", "other"] {
        let folder = place.folder.path().join("repository").join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("mcp.json"), text).unwrap();
    }
    for (file, expected) in [
        ("mcp.json", "/project project"),
        (
            "../repository/.vscode/mcp.json",
            "/project/../repository repository",
        ),
        (
            "../repository/.cursor/mcp.json",
            "/project/../repository repository",
        ),
        ("../repository/other/mcp.json", "/project project"),
    ] {
        let shown = &servers_in(&place, file)[0].1;
        assert_eq!(shown, &format!("stdio: x {expected}"), "{file}");
    }
}

#[test]
fn syntax_errors_show_no_content() {
    for (name, text) in [
        (
            "switchboard.toml",
            "authorization = Bearer sk-secret-123456",
        ),
        (
            "switchboard.yaml",
            "authorization: \"Bearer sk-secret-123456",
        ),
        ("switchboard.yaml", "a: b: sk-secret-123456"),
        ("switchboard.json", "{\"authorization\": sk-secret-123456}"),
    ] {
        let error = error_of(name, text);
        assert!(!error.contains("sk-secret"), "{error}");
        assert!(error.contains("line 1"), "{error}");
    }
}

#[test]
fn an_empty_server_list_disables_all_servers() {
    let user = ("user/switchboard.yaml", "mcp_servers: {crm: {command: x}}");
    for (text, expected) in [
        ("mcp_servers: {}", Some(0)),
        ("mcp_servers: []", Some(0)),
        ("# nothing yet\n", Some(1)),
    ] {
        let place = Place::with(&[user, ("project/switchboard.yaml", text)]);
        let servers = place.load().unwrap().servers;
        assert_eq!(servers.map(|it| it.len()), expected, "{text}");
    }
    let place = Place::with(&[("project/switchboard.yaml", "# nothing yet\n")]);
    assert!(place.load().unwrap().servers.is_none());
}

#[test]
fn errors_name_the_file_and_a_remedy() {
    let errors: Vec<String> = [
        ("switchboard.yaml", "modle: openai/a"),
        ("switchboard.yaml", "model: [openai/a]"),
        ("switchboard.yaml", "model: openai/a\n  bad: indent"),
        ("switchboard.toml", "model = "),
        ("switchboard.json", "{\"model\": }"),
        ("switchboard.json", "[]"),
        ("switchboard.yaml", "max_steps: 0"),
        ("switchboard.yaml", "approve: maybe"),
        ("switchboard.yaml", "instructions: ${UNSET}"),
        (
            "switchboard.yaml",
            "providers: {litellm: {base_ulr: 'http://a'}}",
        ),
        ("switchboard.yaml", "providers: {litellm: {}}"),
        (
            "switchboard.yaml",
            "providers: {litellm: {base_url: localhost}}",
        ),
        (
            "switchboard.yaml",
            "providers: {l: {base_url: 'http://a', profile: x}}",
        ),
        (
            "switchboard.yaml",
            "providers: {offline: {base_url: 'http://a'}}",
        ),
        ("switchboard.yaml", "providers: {openai: {profile: vllm}}"),
        (
            "switchboard.yaml",
            "providers: {anthropic: {options: {cach: {scope: turns}}}}",
        ),
        (
            "switchboard.yaml",
            "providers: {openai: {options: {store: true}}}",
        ),
        (
            "switchboard.yaml",
            "providers: {gemini: {options: {server_tools: [{type: bing}]}}}",
        ),
        ("switchboard.yaml", "providers: {ollama: {options: {}}}"),
        (
            "switchboard.yaml",
            "providers: {openai: {options: {server_tools: [{type: web_search}]}}}",
        ),
        (
            "switchboard.yaml",
            "providers: {openai: {retry: {max_attempts: 0}}}",
        ),
        (
            "switchboard.yaml",
            "providers: {openai: {retry: {max_delay: 1e30}}}",
        ),
        ("switchboard.yaml", "circuit_breaker: {tool_failures: -1}"),
        ("switchboard.yaml", "circuit_breaker: {pauze: 3}"),
        (
            "switchboard.yaml",
            "providers: {l: {base_url: 'http://a', text_calls: [xml]}}",
        ),
        (
            "switchboard.yaml",
            "providers: {openai: {tools_by_prompt: sometimes}}",
        ),
        ("switchboard.yaml", "mcp_servers: {crm: {comand: x}}"),
        ("switchboard.yaml", "mcp_servers: {}\nmcpServers: {}"),
    ]
    .into_iter()
    .map(|(name, text)| error_of(name, text))
    .collect();
    insta::assert_snapshot!(errors.join("\n---\n"));
}

#[test]
fn unusable_files_are_named() {
    let place = Place::with(&[
        ("project/a.yaml", ""),
        ("project/b.ini", "x"),
        ("project/empty.json", "{}"),
    ]);
    let twice = Place::with(&[
        ("project/switchboard.yaml", ""),
        ("project/switchboard.toml", ""),
    ]);
    let errors = [
        place.error(&with_config("none.yaml")),
        place.error(&with_config("b.ini")),
        place.error(&with_servers("none.json")),
        place.error(&with_servers("empty.json")),
        twice.error(&ConfigSources::default()),
    ];
    insta::assert_snapshot!(errors.join("\n---\n"));
}

#[test]
fn errors_contain_no_values() {
    let place = Place::with(&[]);
    for text in [
        "temperature: ${KEY}",
        "model: ['${KEY}']",
        "providers: {l: {base_url: '${KEY}'}}",
        "mcp_servers: {crm: {url: '${KEY}'}}",
        "mcp_servers: {crm: {command: x, env: {A: ['${KEY}']}}}",
    ] {
        let value: serde_json::Value = serde_saphyr::from_str(text).unwrap();
        let error = config_from_value(Path::new("f.yaml"), value, &place.environment).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("k-123"), "{text}: {shown}");
    }
}

#[test]
fn expanded_values_are_known_secrets() {
    let place = Place::with(&[
        ("user/switchboard.yaml", "instructions: '${KEY}'"),
        (
            "project/switchboard.yaml",
            "model: 'acme/${NAME}'\nproviders: {acme: {base_url: 'http://localhost:1'}}",
        ),
    ]);
    let config = place.load().unwrap();
    let filled: Vec<&str> = config
        .filled
        .iter()
        .map(secrecy::ExposeSecret::expose_secret)
        .collect();
    assert_eq!(filled, ["k-123", "crm"]);
}
