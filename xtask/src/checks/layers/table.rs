//! The layer table of the architecture as data. Change it together with the document, with the
//! reason in the commit.

/// What one of our crates may depend on.
#[derive(Debug)]
pub(super) struct Row {
    /// Its folder in `crates/` (or at the top: `xtask`).
    pub(super) folder: &'static str,
    /// Its layer, in the words of the architecture document.
    pub(super) layer: &'static str,
    /// Folders of the crates that it may use in any way.
    pub(super) may_use: &'static [&'static str],
    /// Folders that only its tests and examples may use, beside `testkit`.
    pub(super) tests_may_use: &'static [TestUse],
}

/// An exception for dev-dependencies.
#[derive(Debug)]
pub(super) struct TestUse {
    pub(super) folder: &'static str,
    /// Reason for the exception. The message shows it, so that others do not extend the exception.
    pub(super) why: &'static str,
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

const EXAMPLE: &str = "its examples show the composition of core and adapters";
const GOLDEN: &str = "the golden tests put one fixture through every provider";

const fn tests(folder: &'static str, why: &'static str) -> TestUse {
    TestUse { folder, why }
}

/// An adapter that is a provider.
const fn provider(folder: &'static str) -> Row {
    Row {
        folder,
        layer: "2 adapters",
        may_use: &["domain", "providers-common"],
        tests_may_use: &[],
    }
}

/// Every crate of the workspace, and crates that the architecture plans.
pub(super) const ROWS: &[Row] = &[
    Row {
        folder: "domain",
        layer: "0 domain",
        may_use: &[],
        tests_may_use: &[],
    },
    Row {
        folder: "orchestration",
        layer: "1 application core",
        may_use: &["domain"],
        tests_may_use: &[
            tests("providers-common", EXAMPLE),
            tests("providers-anthropic", EXAMPLE),
            tests("providers-openai", EXAMPLE),
            tests("providers-gemini", EXAMPLE),
            tests("providers-ollama", EXAMPLE),
            tests("providers-offline", EXAMPLE),
            tests("mcp-client", EXAMPLE),
            tests("sessions", EXAMPLE),
        ],
    },
    Row {
        folder: "evals",
        layer: "1b on the core",
        may_use: &["domain", "orchestration"],
        tests_may_use: &[],
    },
    Row {
        folder: "server",
        layer: "1b on the core",
        may_use: &["domain", "orchestration"],
        tests_may_use: &[
            tests("sessions", "its tests keep what clients come back to"),
            tests("providers-offline", "a model that needs no network"),
            tests("mcp-client", "its tests call tools behind a real protocol"),
        ],
    },
    Row {
        folder: "providers-common",
        layer: "2 adapters",
        may_use: &["domain"],
        tests_may_use: &[],
    },
    provider("providers-anthropic"),
    provider("providers-openai"),
    provider("providers-gemini"),
    provider("providers-ollama"),
    provider("providers-offline"),
    Row {
        folder: "mcp-client",
        layer: "2 adapters",
        may_use: &["domain"],
        tests_may_use: &[tests(
            "mcp-servers",
            "its tests talk to real servers, and these need no installation",
        )],
    },
    Row {
        folder: "sessions",
        layer: "2 adapters",
        may_use: &["domain"],
        tests_may_use: &[],
    },
    Row {
        folder: "app",
        layer: "3 composition",
        may_use: &[
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
        tests_may_use: &[],
    },
    Row {
        folder: "mcp-servers",
        layer: "beside",
        may_use: &["domain"],
        tests_may_use: &[],
    },
    Row {
        folder: TESTKIT,
        layer: "beside",
        may_use: &["domain"],
        tests_may_use: &[
            tests("providers-common", GOLDEN),
            tests("providers-anthropic", GOLDEN),
            tests("providers-openai", GOLDEN),
            tests("providers-gemini", GOLDEN),
            tests("providers-ollama", GOLDEN),
            tests("providers-offline", GOLDEN),
            tests(
                "orchestration",
                "whole runs against model servers that others wrote, on every wire",
            ),
            tests(
                "mcp-client",
                "tests of whole runs need tools behind a real protocol",
            ),
            tests("sessions", "tests of whole runs store and resume"),
        ],
    },
    Row {
        folder: "xtask",
        layer: "beside",
        may_use: &[],
        tests_may_use: &[],
    },
];

pub(super) const CONFINED: &[Confined] = &[
    Confined {
        packages: &["rmcp", "rmcp-macros"],
        to: &["mcp-client", "mcp-servers"],
        // The floor with which `cargo xtask bench turn` compares is written with it, by hand.
        to_tests_of: &["app"],
        why: "the types of the MCP SDK change with it; everyone else sees the `ToolHost` port",
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
    why: "who takes only the domain gets no runtime, no HTTP and no MCP",
}];
