//! The layer table of docs/architecture.md as data. Change both together, and state the reason in
//! the commit.

/// A crate of the workspace with the crates that it may depend on.
#[derive(Debug)]
pub(super) struct LayerRow {
    /// Folder of the crate, relative to `crates/` or, for `xtask`, to the repository.
    pub(super) folder: &'static str,
    /// Name of the crate's layer in docs/architecture.md.
    pub(super) layer: &'static str,
    /// Folders of the crates that the crate may use. Tests and examples may use all crates except
    /// `app`.
    pub(super) may_use: &'static [&'static str],
}

/// Third-party packages that only some crates of the workspace may depend on.
#[derive(Debug)]
pub(super) struct ConfinedPackages {
    pub(super) packages: &'static [&'static str],
    /// Folders of the crates that may use the packages. A `*` at the end matches any suffix.
    pub(super) to: &'static [&'static str],
    /// Folders of the crates that may use the packages in dev-dependencies only.
    pub(super) to_tests_of: &'static [&'static str],
    pub(super) why: &'static str,
}

/// Third-party packages that a crate of the workspace must not depend on.
#[derive(Debug)]
pub(super) struct BannedPackages {
    pub(super) folder: &'static str,
    pub(super) packages: &'static [&'static str],
    pub(super) why: &'static str,
}

/// Folder of the crate with test tools. Other crates may use it only in dev-dependencies.
pub(super) const TESTKIT: &str = "testkit";

const fn row(
    folder: &'static str,
    layer: &'static str,
    may_use: &'static [&'static str],
) -> LayerRow {
    LayerRow {
        folder,
        layer,
        may_use,
    }
}

const fn provider(folder: &'static str) -> LayerRow {
    row(folder, "2 adapters", &["domain", "providers-common"])
}

/// The rows of the layer table, one for each crate of the workspace.
pub(super) const ROWS: &[LayerRow] = &[
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

pub(super) const CONFINED: &[ConfinedPackages] = &[
    ConfinedPackages {
        packages: &["rmcp", "rmcp-macros"],
        to: &["mcp-client", "mcp-servers"],
        // The baseline of `cargo xtask bench turn` is an example of `app` that uses rmcp directly.
        to_tests_of: &["app"],
        why: "the types of the MCP SDK change with each version; other crates use the `ToolHost` \
              port",
    },
    ConfinedPackages {
        packages: &["reqwest", "reqwest-middleware", "reqwest-retry"],
        // mcp-client passes a reqwest client with its own proxies, time-outs and redirects to the
        // HTTP transport of rmcp. mcp-servers sends requests of the bundled server `bte` to a web
        // service. The public API of both crates contains no reqwest types.
        to: &["providers-*", "mcp-client", "mcp-servers"],
        // The tests of `app` send HTTP requests to `switchboard serve`.
        to_tests_of: &["app"],
        why: "HTTP to a provider is behind the `ChatModel` port",
    },
    ConfinedPackages {
        packages: &[
            "sqlx",
            "sqlx-core",
            "sqlx-sqlite",
            "sqlx-postgres",
            "rusqlite",
            "libsqlite3-sys",
        ],
        // The bundled servers of mcp-servers store their data in SQLite.
        to: &["sessions", "mcp-servers"],
        // A test of `app` locks the session store like another program.
        to_tests_of: &["app"],
        why: "SQL is behind the `SessionStore` port",
    },
    ConfinedPackages {
        packages: &["anyhow", "eyre", "color-eyre"],
        to: &["app", "xtask"],
        to_tests_of: &[],
        why: "errors of libraries are enums with fields, which a caller can match on",
    },
];

pub(super) const BANNED: &[BannedPackages] = &[BannedPackages {
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
