use proptest::prelude::*;

use super::*;
use crate::terminal::markdown::block_layout::tests::marked_text;

/// A terminal emulator to which the view writes.
struct Terminal {
    parser: vt100::Parser,
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A terminal driver converts each line feed to a carriage return and a line feed.
        for &byte in bytes {
            if byte == b'\n' {
                self.parser.process(b"\r\n");
            } else {
                self.parser.process(&[byte]);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn view(columns: usize, rows: usize) -> (MarkdownView<Terminal>, TerminalSize) {
    let parser = vt100::Parser::new(
        u16::try_from(rows).unwrap(),
        u16::try_from(columns).unwrap(),
        2_000,
    );
    let view = MarkdownView::new(Terminal { parser }, MarkdownStyles::new(true));
    (view, TerminalSize { columns, rows })
}

/// Returns all rows that the terminal has shown, including those that were scrolled out of view.
fn all_rows(view: &mut MarkdownView<Terminal>) -> Vec<String> {
    let screen = view.out.parser.screen_mut();
    let (height, width) = screen.size();
    screen.set_scrollback(usize::MAX);
    let mut above = screen.scrollback();
    let mut rows = Vec::new();
    while above > 0 {
        screen.set_scrollback(above);
        rows.extend(screen.rows(0, width).next());
        above -= 1;
    }
    screen.set_scrollback(0);
    rows.extend(screen.rows(0, width).take(usize::from(height)));
    while rows.last().is_some_and(|row| row.trim().is_empty()) {
        rows.pop();
    }
    rows.iter().map(|row| row.trim_end().to_owned()).collect()
}

fn shown<'t>(
    pieces: impl IntoIterator<Item = &'t str>,
    columns: usize,
    rows: usize,
) -> Vec<String> {
    let (mut view, size) = view(columns, rows);
    for piece in pieces {
        view.append_text(piece, size).unwrap();
    }
    view.finish_text(size).unwrap();
    all_rows(&mut view)
}

const ANSWER: &str = "Intro with **bold\nwords** in it.\n\n| a | b |\n|---|---|\n| one | two |\n| \
                      three | four |\n\n```sh\nls -l\n```\n1. first\n2. second\n\nEnd of it.\n";

#[test]
fn text_appears_before_its_block_is_finished() {
    let (mut view, size) = view(40, 12);
    view.append_text("Hello **wor", size).unwrap();
    assert_eq!(all_rows(&mut view), ["Hello **wor"]);
    view.append_text("ld** and", size).unwrap();
    assert_eq!(all_rows(&mut view), ["Hello world and"]);
    view.append_text(" more\n\nNext", size).unwrap();
    assert_eq!(all_rows(&mut view), ["Hello world and more", "", "Next"]);
    view.finish_text(size).unwrap();
    assert_eq!(all_rows(&mut view), ["Hello world and more", "", "Next"]);
}

#[test]
fn other_output_is_printed_above_the_answer() {
    use std::{cell::RefCell, rc::Rc};

    /// A terminal to which two writers write.
    #[derive(Clone)]
    struct Shared(Rc<RefCell<Terminal>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let size = TerminalSize {
        columns: 40,
        rows: 12,
    };
    let parser = vt100::Parser::new(12, 40, 100);
    let terminal = Shared(Rc::new(RefCell::new(Terminal { parser })));
    let mut view = MarkdownView::new(terminal.clone(), MarkdownStyles::new(true));
    view.append_text("First.\n\nThe answer is", size).unwrap();
    let mut other = terminal.clone();
    view.print_above_open_block(size, || other.write_all(b"a warning\n").unwrap())
        .unwrap();
    view.append_text(" 42.", size).unwrap();
    view.finish_text(size).unwrap();
    let shown = terminal.0.borrow().parser.screen().contents();
    assert_eq!(shown.trim_end(), "a warning\nFirst.\n\nThe answer is 42.");
}

#[test]
fn a_block_taller_than_the_screen_is_shown_completely() {
    let table: String = (0..40).fold("| n | square |\n|---|---|\n".to_owned(), |table, n| {
        format!("{table}| {n} | {} |\n", n * n)
    });
    let pieces: Vec<&str> = table.split_inclusive(' ').collect();
    let rows = shown(pieces, 30, 10);
    assert_eq!(rows.len(), 42, "{rows:#?}");
    assert_eq!(rows[41], "39 │ 1521");
    assert_eq!(rows[0], "n  │ square");
}

#[test]
fn a_screen_without_size_is_not_an_error() {
    for (columns, rows) in [(1, 1), (2, 1), (3, 2)] {
        let (mut view, _) = view(columns, rows);
        for size in [
            TerminalSize { columns, rows },
            TerminalSize {
                columns: 0,
                rows: 0,
            },
        ] {
            view.append_text(ANSWER, size).unwrap();
            view.finish_text(size).unwrap();
        }
    }
}

/// Splits a text at the positions `cuts`, except positions within a character.
fn pieces_of<'t>(text: &'t str, cuts: &[prop::sample::Index]) -> Vec<&'t str> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    ends.retain(|&end| text.is_char_boundary(end));
    ends.push(text.len());
    ends.sort_unstable();
    let starts = std::iter::once(0).chain(ends.clone());
    starts
        .zip(ends)
        .map(|(start, end)| &text[start..end])
        .collect()
}

proptest! {
    #[test]
    fn the_screen_does_not_depend_on_the_deltas(
        text in marked_text(),
        cuts in any::<[prop::sample::Index; 5]>(),
        columns in 12_usize..50,
        rows in 4_usize..30,
    ) {
        let whole = shown([text.as_str()], columns, rows);
        let pieces = shown(pieces_of(&text, &cuts), columns, rows);
        prop_assert_eq!(whole, pieces);
    }
}
