//! The layer table of the architecture as data. Change it together with the document, with the
//! reason in the commit.

/// What one of our crates may depend on.
#[derive(Debug)]
pub(super) struct Row {
    /// Its folder in `crates/` (or at the top: `xtask`).
    pub(super) folder: &'static str,
    /// Its layer, in the words of the architecture document.
    pub(super) layer: &'static str,
    /// Folders of the crates that it may use. Its tests and examples may use all crates but `app`.
    pub(super) may_use: &'static [&'static str],
}

/// Third-party packages whose types stay inside some of our crates.
#[derive(Debug)]
pub(super) struct Confined {
    pub(super) packages: &'static [&'static str],
    /// Folders. A `*` at the end matches any suffix.
    pub(super) to: &'static [&'static str],
    /// Folders that may use it in dev-dependencies only.
    pub(super) to_tests_of: &'static [&'static str],
    pub(super) why: &'static str,
}

/// Third-party packages that one of our crates must never bring to its users.
#[derive(Debug)]
pub(super) struct Banned {
    pub(super) folder: &'static str,
    pub(super) packages: &'static [&'static str],
    pub(super) why: &'static str,
}

/// Allowed as a dev-dependency of every crate, and nowhere else.
pub(super) const TESTKIT: &str = "testkit";

const fn row(folder: &'static str, layer: &'static str, may_use: &'static [&'static str]) -> Row {
    Row {
        folder,
        layer,
        may_use,
    }
}

const fn provider(folder: &'static str) -> Row {
    row(folder, "2 adapters", &["domain", "providers-common"])
}

/// Every crate of the workspace.
pub(super) const ROWS: &[Row] = &[
    row("domain", "0 domain", &[]),
    row("orchestration", "1 application core", &["domain"]),
    row("evals", "1b on the core", &["domain", "orchestration"]),
    row("server", "1b on the core", &["domain", "orchestration"]),
    row("providers-common", "2 adapters", &["domain"]),
    provider("providers-anthropic"),
    provider("providers-openai"),
    provider("providers-gemini"),
    provider("providers-ollama"),
    provider("providers-offline"),
    row("mcp-client", "2 adapters", &["domain"]),
    row("sessions", "2 adapters", &["domain"]),
    row(
        "app",
        "3 composition",
        &[
            "domain",
            "orchestration",
            "evals",
            "providers-common",
            "providers-anthropic",
            "providers-openai",
            "providers-gemini",
            "providers-ollama",
            "providers-offline",
            "mcp-client",
            "mcp-servers",
            "sessions",
            "server",
        ],
    ),
    row("mcp-servers", "beside", &["domain"]),
    row(TESTKIT, "beside", &["domain"]),
    row("xtask", "beside", &[]),
];

pub(super) const CONFINED: &[Confined] = &[
    Confined {
        packages: &["rmcp", "rmcp-macros"],
        to: &["mcp-client", "mcp-servers"],
        // The floor with which `cargo xtask bench turn` compares is written with it, by hand.
        to_tests_of: &["app"],
        why: "the types of the MCP SDK change with each version; other crates use the `ToolHost` \
              port",
    },
    Confined {
        packages: &["reqwest", "reqwest-middleware", "reqwest-retry"],
        // mcp-client: rmcp's HTTP transport takes a client that was made by its user, and that is
        // where proxies, time-outs and redirects are set.
        // mcp-servers: the bundled server `bte` asks a TRAPI service on the web, and nothing of
        // reqwest is in the crate's public face.
        to: &["providers-*", "mcp-client", "mcp-servers"],
        // Its tests call `switchboard serve` over HTTP as anyone would.
        to_tests_of: &["app"],
        why: "HTTP to a provider is behind the `ChatModel` port",
    },
    Confined {
        packages: &[
            "sqlx",
            "sqlx-core",
            "sqlx-sqlite",
            "sqlx-postgres",
            "rusqlite",
            "libsqlite3-sys",
        ],
        // mcp-servers: the bundled servers keep their demonstration data in SQLite.
        to: &["sessions", "mcp-servers"],
        // Another program that locks the store.
        to_tests_of: &["app"],
        why: "SQL is behind the `SessionStore` port",
    },
    Confined {
        packages: &["anyhow", "eyre", "color-eyre"],
        to: &["app", "xtask"],
        to_tests_of: &[],
        why: "errors of libraries are enums with fields, which a caller can match on",
    },
];

pub(super) const BANNED: &[Banned] = &[Banned {
    folder: "domain",
    packages: &[
        "tokio",
        "tokio-util",
        "tokio-stream",
        "async-std",
        "smol",
        "hyper",
        "hyper-util",
        "http-body",
        "axum",
        "reqwest",
        "rmcp",
        "sqlx",
    ],
    why: "users of the domain crate alone must get no runtime, HTTP or MCP dependencies",
}];
