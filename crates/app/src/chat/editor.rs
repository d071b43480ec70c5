//! The line editor.

use std::{
    borrow::Cow,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use reedline::{
    Color, ColumnarMenu, DefaultHinter, EditCommand, Emacs, FileBackedHistory, KeyCode,
    KeyModifiers, MenuBuilder as _, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, Signal, ValidationResult,
    Validator, default_emacs_keybindings,
};
use serde::de::IgnoredAny;
use tokio::time::timeout;

use super::complete::{SharedKnown, Words};
use crate::{
    cli::interrupt::{Interrupts, Presses},
    private_file,
    terminal::{AsksForLines, NoAnswer, say, say_warning, without_controls},
};

/// Lines that are remembered.
const HISTORY: usize = 1_000;
/// How long the editor may take to stop. It looks for that every 100 ms.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
const MENU: &str = "words";

/// What a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// This.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or nobody is there any more.
    End,
}

/// The line editor of a terminal. Cheap to clone; one line is read at a time.
#[derive(Clone)]
pub(crate) struct Editor {
    /// For questions to the model, with what was said before. Holding it is having the terminal.
    main: Arc<Mutex<Reedline>>,
    /// Ends the reading of such a question.
    stop: Arc<AtomicBool>,
    colours: bool,
    presses: Presses,
}

impl Editor {
    /// An editor that keeps what was said in a file that nobody else reads.
    pub(crate) fn new(
        history: Option<PathBuf>,
        known: SharedKnown,
        colours: bool,
        presses: Presses,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut keys = default_emacs_keybindings();
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Tab,
            ReedlineEvent::UntilFound(vec![
                ReedlineEvent::Menu(MENU.to_owned()),
                ReedlineEvent::MenuNext,
            ]),
        );
        let menu = ColumnarMenu::default().with_name(MENU);
        let mut main = bare(colours, &stop)
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_completer(Box::new(Words(known)))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_partial_completions(true)
            .with_quick_completions(true)
            .with_hinter(Box::new(
                DefaultHinter::default().with_style(if colours {
                    Color::Default.dimmed()
                } else {
                    Color::Default.normal()
                }),
            ))
            .with_validator(Box::new(Whole))
            // What begins with a space is not kept, as shells have it.
            .with_history_exclusion_prefix(Some(" ".to_owned()));
        match history.map(open_history).transpose() {
            Ok(Some(history)) => main = main.with_history(history),
            Ok(None) => {}
            Err(error) => say_warning(&format!("what you said before is not known: {error}")),
        }
        Self {
            main: Arc::new(Mutex::new(main)),
            stop,
            colours,
            presses,
        }
    }

    /// Reads what somebody has to say, until the program is to end.
    pub(crate) async fn read(&self, interrupts: &Interrupts) -> io::Result<Line> {
        if interrupts.is_interrupted() {
            return Ok(Line::End);
        }
        let main = Arc::clone(&self.main);
        let mut reading = tokio::task::spawn_blocking(move || {
            let mut editor = main.lock().unwrap_or_else(PoisonError::into_inner);
            let line = line_of(editor.read_line(&Mark::QUESTION));
            // What cannot be written now is written at the end.
            let _ = editor.sync_history();
            line
        });
        let line = tokio::select! {
            line = &mut reading => line,
            () = interrupts.first() => {
                // It gives the terminal back as it was, which must not be left out.
                self.stop.store(true, Ordering::Relaxed);
                match timeout(STOP_TIMEOUT, &mut reading).await {
                    Ok(line) => line,
                    // The terminal is gone, and the editor reads it for ever.
                    Err(_) => return Ok(Line::End),
                }
            }
        };
        line.map_err(io::Error::other)?.map(|line| match line {
            Line::Text(text) => Line::Text(joined_lines(&text)),
            other => other,
        })
    }

    /// Reads one line, or a text that is to be changed.
    async fn read_once(&self, mark: Mark, text: Option<String>) -> Line {
        let (main, colours) = (Arc::clone(&self.main), self.colours);
        // Of this question alone: one that was withdrawn takes none of the next with it.
        let stop = Arc::new(AtomicBool::new(false));
        let guard = StopWhenDropped(Some(Arc::clone(&stop)));
        let reading = tokio::task::spawn_blocking(move || {
            let _terminal = main.lock().unwrap_or_else(PoisonError::into_inner);
            let mut editor = bare(colours, &stop);
            if let Some(text) = text {
                editor = editor.with_validator(Box::new(WholeJson));
                editor.run_edit_commands(&[EditCommand::InsertString(text)]);
            }
            line_of(editor.read_line(&mark))
        });
        let line = reading.await;
        guard.disarm();
        match line {
            Ok(Ok(line)) => line,
            _ => Line::End,
        }
    }
}

/// A question whose future is dropped is withdrawn.
struct StopWhenDropped(Option<Arc<AtomicBool>>);

impl StopWhenDropped {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        if let Some(stop) = &self.0 {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

#[async_trait]
impl AsksForLines for Editor {
    fn is_somebody_there(&self) -> bool {
        true
    }

    async fn ask(&self, question: String) -> Result<String, NoAnswer> {
        say(question);
        match self.read_once(Mark::ANSWER, None).await {
            Line::Text(text) => Ok(text),
            Line::Interrupted => {
                self.presses.press();
                Err(NoAnswer::Interrupted)
            }
            Line::End => Err(NoAnswer::Ended),
        }
    }

    fn can_edit(&self) -> bool {
        true
    }

    async fn edit(&self, question: String, text: String) -> Option<String> {
        say(format_args!(
            "{question} (Enter takes it, Alt+Enter begins a line, Ctrl-C leaves it as it was)"
        ));
        // The person must see what they take.
        let text = without_controls(&text).into_owned();
        match self.read_once(Mark::EDIT, Some(text)).await {
            Line::Text(text) => Some(text),
            Line::Interrupted | Line::End => None,
        }
    }
}

/// An editor that remembers nothing.
fn bare(colours: bool, stop: &Arc<AtomicBool>) -> Reedline {
    Reedline::create()
        .with_ansi_colors(colours)
        .with_break_signal(Arc::clone(stop))
        .use_bracketed_paste(true)
}

fn open_history(path: PathBuf) -> io::Result<Box<FileBackedHistory>> {
    private_file::open_or_create(&path)?;
    let history = FileBackedHistory::with_file(HISTORY, path).map_err(io::Error::other)?;
    Ok(Box::new(history))
}

fn line_of(signal: io::Result<Signal>) -> io::Result<Line> {
    Ok(match signal? {
        Signal::Success(text) => Line::Text(text),
        Signal::CtrlC => Line::Interrupted,
        _ => Line::End,
    })
}

/// A backslash at the end of a line was there to begin another one.
pub(crate) fn joined_lines(text: &str) -> String {
    text.replace("\\\n", "\n")
}

/// A line that ends with a backslash goes on.
struct Whole;

impl Validator for Whole {
    fn validate(&self, line: &str) -> ValidationResult {
        if line.ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// JSON that is not closed goes on. What is wrong in another way is said when it is taken.
struct WholeJson;

impl Validator for WholeJson {
    fn validate(&self, line: &str) -> ValidationResult {
        match serde_json::from_str::<IgnoredAny>(line) {
            Err(error) if error.is_eof() && !line.trim().is_empty() => ValidationResult::Incomplete,
            _ => ValidationResult::Complete,
        }
    }
}

/// What stands before a line.
#[derive(Debug, Clone, Copy)]
struct Mark {
    first: &'static str,
    further: &'static str,
}

impl Mark {
    const QUESTION: Self = Self {
        first: "❯ ",
        further: "… ",
    };
    const ANSWER: Self = Self {
        first: "  › ",
        further: "    ",
    };
    const EDIT: Self = Self {
        first: "  ",
        further: "  ",
    };
}

impl Prompt for Mark {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(self.first)
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.further)
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing with ",
        };
        Cow::Owned(format!("({found}{}) ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_at_the_end_begins_a_line() {
        let goes_on = |text: &str| matches!(Whole.validate(text), ValidationResult::Incomplete);
        assert!(goes_on("one\\") && !goes_on("one\\ ") && !goes_on("one"));
        assert_eq!(joined_lines("one\\\ntwo\n\\three"), "one\ntwo\n\\three");
    }

    #[test]
    fn json_goes_on_until_it_is_closed() {
        let goes_on = |text: &str| matches!(WholeJson.validate(text), ValidationResult::Incomplete);
        assert!(goes_on("{\"a\": [1,") && goes_on("{"));
        assert!(!goes_on("{\"a\": 1}") && !goes_on("{]") && !goes_on(""));
    }

    #[cfg(unix)]
    #[test]
    fn what_was_said_is_kept_where_nobody_else_reads_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/history");
        drop(open_history(path.clone()).unwrap());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
