//! Tools that must not be called.

use switchboard_orchestration::tools::{pattern::Pattern, results::READ_TOOL, search::SEARCH_TOOL};

/// A pattern of [`Turn::forbidden`](super::Turn::forbidden), ready to be compared.
pub(crate) struct Forbidden {
    /// The tool's name, whatever its server: a name may have a `/` of its own.
    tool: Pattern,
    /// The server and the tool.
    both: Option<(Pattern, Pattern)>,
}

impl Forbidden {
    /// Reads one; every text is one.
    pub(crate) fn of(text: &str) -> Self {
        let both = text.split_once('/');
        Self {
            tool: Pattern::new(text),
            both: both.map(|(server, tool)| (Pattern::new(server), Pattern::new(tool))),
        }
    }

    /// Whether it stands for this tool; the program's own have no server.
    pub(crate) fn names(&self, server: Option<&str>, tool: &str) -> bool {
        let by_both = self.both.as_ref().zip(server);
        self.tool.matches(tool)
            || by_both.is_some_and(|((of_server, of_tool), server)| {
                of_server.matches(server) && of_tool.matches(tool)
            })
    }

    /// Why no tool can ever be meant by this, if that is so.
    pub(super) fn fault(text: &str) -> Option<&'static str> {
        if text.trim().is_empty() {
            return Some("is empty, and forbids nothing; `*` is any tool");
        }
        if text.trim() != text {
            return Some("begins or ends with white space, and no tool's name does");
        }
        let is_half = text
            .split_once('/')
            .is_some_and(|(server, tool)| server.is_empty() || tool.is_empty());
        is_half.then_some("is `tool` or `server/tool`, with `*` for any characters")
    }
}

/// Whether it stands for one of the tools of the program itself, which are in no server's list.
pub(crate) fn is_own_name(pattern: &Forbidden) -> bool {
    [SEARCH_TOOL, READ_TOOL]
        .iter()
        .any(|tool| pattern.names(None, tool))
}

#[cfg(test)]
mod tests {
    use super::Forbidden;

    #[test]
    fn wildcards_stand_in_both_halves() {
        for (pattern, server, tool, is_meant) in [
            ("delete", Some("shop"), "delete", true),
            ("delete", None, "delete", true),
            ("delete", Some("shop"), "delete_all", false),
            ("Delete", Some("shop"), "delete", false),
            ("delete_*", Some("shop"), "delete_all", true),
            ("*", Some("shop"), "x", true),
            ("*", None, "x", true),
            ("shop/*", Some("shop"), "x", true),
            ("shop/*", Some("shopping"), "x", false),
            ("shop/*", None, "x", false),
            ("*/x", Some("shop"), "x", true),
            ("*/x", None, "x", false),
            ("s?op/get_*", Some("shop"), "get_one", true),
            ("shop__x", Some("shop"), "x", false),
            // A name with a stroke of its own.
            ("ns/get", Some("shop"), "ns/get", true),
            ("shop/ns/get", Some("shop"), "ns/get", true),
        ] {
            let found = Forbidden::of(pattern).names(server, tool);
            assert_eq!(found, is_meant, "{pattern} {server:?} {tool}");
        }
    }
}
