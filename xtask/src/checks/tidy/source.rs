//! Extracts the comments and string literals of a Rust file, without its tests.

use std::ops::RangeInclusive;

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    spanned::Spanned as _,
    visit::{self, Visit},
};

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;

/// A comment or string literal with its line number, starting at 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prose {
    pub(super) line: usize,
    pub(super) text: String,
}

/// Returns whether a whole file is test code, judged by its path.
pub(super) fn is_test_file(file: &str) -> bool {
    let mut test_folders = ["/tests/", "/benches/", "/snapshots/"].iter();
    let in_test_folder = test_folders.any(|folder| file.contains(folder));
    let name = file.rsplit('/').next().unwrap_or(file);
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    in_test_folder || stem == "tests" || stem.ends_with("_tests") || stem.ends_with("_test")
}

/// Returns the comment lines of a file, without its test items.
pub(super) fn extract_comments(text: &str, file: &syn::File) -> Vec<Prose> {
    let tests = visit_items(file).tests;
    let lines = text.lines().zip(1..);
    let lines = lines.filter(|(line, _)| line.trim().starts_with("//"));
    let lines = lines.filter(|(_, number)| !tests.iter().any(|range| range.contains(number)));
    let comment = |(text, line): (&str, usize)| Prose {
        line,
        text: text.trim().to_owned(),
    };
    lines.map(comment).collect()
}

/// Returns the string literals of a parsed file, also those inside macro calls, without tests and
/// doc comments.
pub(super) fn extract_strings(file: &syn::File) -> Vec<Prose> {
    visit_items(file).strings
}

fn visit_items(file: &syn::File) -> ItemVisitor {
    let mut items = ItemVisitor::default();
    items.visit_file(file);
    items
}

#[derive(Default)]
struct ItemVisitor {
    strings: Vec<Prose>,
    /// Line ranges of the items that are compiled only for tests.
    tests: Vec<RangeInclusive<usize>>,
}

impl<'ast> Visit<'ast> for ItemVisitor {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_test_item(item) {
            let span = item.span();
            self.tests.push(span.start().line..=span.end().line);
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        // A doc comment is an attribute with a string literal, but it counts as a comment.
        if !attribute.path().is_ident("doc") {
            visit::visit_attribute(self, attribute);
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.strings.push(Prose {
            line: literal.span().start().line,
            text: literal.value(),
        });
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        for token in flatten_tokens(call.tokens.clone()) {
            let line = token.span().start().line;
            if let TokenTree::Literal(literal) = token
                && let Ok(literal) = syn::parse_str::<syn::LitStr>(&literal.to_string())
            {
                let text = literal.value();
                self.strings.push(Prose { line, text });
            }
        }
    }
}

/// Returns all tokens, with the contents of groups instead of the groups.
pub(super) fn flatten_tokens(tokens: TokenStream) -> Vec<TokenTree> {
    let flat = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) => flatten_tokens(group.stream()),
        token => vec![token],
    });
    flat.collect()
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
