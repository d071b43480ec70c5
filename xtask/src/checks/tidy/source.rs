//! A Rust file as the language rules see it: its comments and its string literals, without tests.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;

/// A piece of prose with its line, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prose {
    pub(super) line: usize,
    pub(super) text: String,
}

/// Returns whether a whole file is test code, judged by its path.
pub(super) fn is_test_file(file: &str) -> bool {
    let in_test_folder = ["/tests/", "/benches/", "/snapshots/"]
        .iter()
        .any(|folder| file.contains(folder));
    let name = file.rsplit('/').next().unwrap_or(file);
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    in_test_folder || stem == "tests" || stem.ends_with("_tests") || stem.ends_with("_test")
}

/// Returns the comment lines of a file, without its inline test modules.
pub(super) fn comments(text: &str) -> Vec<Prose> {
    let mut comments = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let code = line.trim();
        if code.starts_with("#[cfg(test)") || code.starts_with("#[cfg(all(test") {
            skip_item(&mut lines);
        } else if code.starts_with("//") {
            let text = code.to_owned();
            comments.push(Prose { line: at + 1, text });
        }
    }
    comments
}

/// Advances past the item that follows a `#[cfg(test)]` line.
fn skip_item<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>) {
    let (mut depth, mut opened) = (0_usize, false);
    for (_, line) in lines {
        let code = without_strings(line);
        for brace in code.chars() {
            match brace {
                '{' => {
                    depth += 1;
                    opened = true;
                }
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        let ends_without_body = !opened && code.trim_end().ends_with(';');
        if ends_without_body || (opened && depth == 0) {
            return;
        }
    }
}

/// Returns the code of one line without its string literals and its trailing comment.
fn without_strings(line: &str) -> String {
    let mut code = String::new();
    let (mut in_string, mut escaped) = (false, false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => in_string = !in_string,
            '/' if !in_string && characters.peek() == Some(&'/') => break,
            _ if in_string => {}
            other => code.push(other),
        }
    }
    code
}

/// Returns the string literals of a parsed file, also those inside macro calls, without tests and
/// doc comments.
pub(super) fn strings(file: &syn::File) -> Vec<Prose> {
    let mut strings = Strings::default();
    strings.visit_file(file);
    strings.found
}

#[derive(Default)]
struct Strings {
    found: Vec<Prose>,
}

impl Strings {
    fn add(&mut self, literal: &syn::LitStr) {
        self.found.push(Prose {
            line: literal.span().start().line,
            text: literal.value(),
        });
    }

    fn add_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Ok(literal) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                        self.found.push(Prose {
                            line: 0,
                            text: literal.value(),
                        });
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Strings {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_item(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        // Doc comments are comments.
        if !attribute.path().is_ident("doc") {
            visit::visit_attribute(self, attribute);
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.add(literal);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let line = call
            .path
            .segments
            .first()
            .map_or(0, |segment| segment.ident.span().start().line);
        let before = self.found.len();
        self.add_tokens(call.tokens.clone());
        for prose in &mut self.found[before..] {
            prose.line = line;
        }
    }
}

/// Returns whether an item is compiled for tests only.
pub(super) fn is_test_item(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| {
                let condition = list.tokens.to_string();
                condition == "test" || condition.starts_with("all (test")
            })
    })
}
