//! Syntax of programming languages, as far as highlighting needs it.

/// The lexical syntax of a language.
pub(super) struct Language {
    /// Prefixes of comments that end with the line.
    pub(super) line_comments: &'static [&'static str],
    /// Start and end of a block comment.
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    /// Delimiters of strings, longer ones first.
    pub(super) quotes: &'static [&'static str],
    /// Keywords of the language, separated by spaces.
    pub(super) keywords: &'static str,
    /// Whether keywords are case-insensitive.
    pub(super) any_case: bool,
    /// Whether a word before `:` or `=` is a key.
    pub(super) has_keys: bool,
    /// Whether `<name` is a tag.
    pub(super) is_markup: bool,
    /// Whether `'a` may be a lifetime.
    pub(super) has_lifetimes: bool,
}

const PLAIN: Language = Language {
    line_comments: &[],
    block_comment: None,
    quotes: &["\"", "'"],
    keywords: "",
    any_case: false,
    has_keys: false,
    is_markup: false,
    has_lifetimes: false,
};

const C_LIKE: Language = Language { line_comments: &["//"], block_comment: Some(("/*", "*/")), ..PLAIN };

const RUST: Language = Language {
    quotes: &["\""],
    has_lifetimes: true,
    keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref \
        return self Self static struct super trait true type union unsafe use where while yield bool char str u8 u16 u32 u64 u128 usize i8 \
        i16 i32 i64 i128 isize f32 f64",
    ..C_LIKE
};

const JAVASCRIPT: Language = Language {
    quotes: &["\"", "'", "`"],
    keywords: "abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum \
        export extends false finally for from function get if implements import in instanceof interface keyof let namespace never new null \
        number of private protected public readonly return satisfies set static string super switch this throw true try type typeof \
        undefined unknown var void while with yield",
    ..C_LIKE
};

const GO: Language = Language {
    quotes: &["\"", "'", "`"],
    keywords: "any bool break byte case chan const continue default defer else error fallthrough false for func go goto if import int int32 \
        int64 interface iota map nil package range return rune select string struct switch true type uint var",
    ..C_LIKE
};

const C: Language = Language {
    keywords: "abstract alignas auto base bool boolean break byte case catch char class concept const consteval constexpr continue decltype \
        def default defer delegate delete do double dynamic else enum event explicit export extends extension extern false final finally \
        float for foreach friend fun func goto guard if implements import in include inline instanceof int interface internal is lateinit \
        let lock long namespace native new nil null nullptr object open operator out override package private protected public readonly \
        record ref register return sealed short signed sizeof static string struct super suspend switch synchronized template this throw \
        throws trait transient true try typedef typename union unsigned using val var virtual void volatile when where while yield",
    ..C_LIKE
};

const PHP: Language = Language {
    line_comments: &["//", "#"],
    keywords: "abstract and array as break case catch class clone const continue declare default do echo else elseif empty enum extends \
        false final finally fn for foreach function global if implements include instanceof interface isset list match namespace new null \
        or print private protected public readonly require return static switch throw trait true try unset use var while yield",
    ..C_LIKE
};

const PYTHON: Language = Language {
    line_comments: &["#"],
    quotes: &["\"\"\"", "'''", "\"", "'"],
    keywords: "False None True and as assert async await break case class continue def del elif else except finally for from global if \
        import in is lambda match nonlocal not or pass raise return self try while with yield",
    ..PLAIN
};

const RUBY: Language = Language {
    line_comments: &["#"],
    keywords: "BEGIN END alias and begin break case class def defined? do else elsif end ensure false for if in module next nil not or puts \
        raise redo require rescue retry return self super then true undef unless until when while yield",
    ..PLAIN
};

const SHELL: Language = Language {
    line_comments: &["#"],
    keywords: "alias break case cd continue do done echo elif else end esac eval exec exit export fi for function if in local printf read \
        readonly return set shift source test then trap unset until while",
    ..PLAIN
};

const DOCKERFILE: Language = Language {
    line_comments: &["#"],
    keywords: "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR",
    ..PLAIN
};

const SQL: Language = Language {
    line_comments: &["--"],
    block_comment: Some(("/*", "*/")),
    any_case: true,
    keywords: "add all alter and as asc begin between by case cast check column commit constraint create cross default delete desc distinct \
        drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null on or \
        order outer primary references returning right rollback select set table then transaction true union unique update values view \
        when where with",
    ..PLAIN
};

const LUA: Language = Language {
    line_comments: &["--"],
    keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while",
    ..PLAIN
};

const HASKELL: Language = Language {
    line_comments: &["--"],
    block_comment: Some(("{-", "-}")),
    quotes: &["\""],
    keywords: "and as begin case class data deriving do else end exception fun function if import in instance let match module newtype of \
        open rec then type val where with",
    ..PLAIN
};

const LISP: Language = Language {
    line_comments: &[";"],
    quotes: &["\""],
    keywords: "case cond def define defmacro defn defun do fn if lambda let letrec loop nil ns quote recur require set when",
    ..PLAIN
};

const CSS: Language = Language { block_comment: Some(("/*", "*/")), has_keys: true, ..PLAIN };
const SCSS: Language = Language { line_comments: &["//"], ..CSS };
const MARKUP: Language = Language { block_comment: Some(("<!--", "-->")), is_markup: true, ..PLAIN };
const JSON: Language = Language { quotes: &["\""], keywords: "true false null", ..C_LIKE };
const CONFIG: Language =
    Language { line_comments: &["#"], has_keys: true, keywords: "true false null yes no on off", ..PLAIN };
const INI: Language = Language { line_comments: &[";", "#"], ..CONFIG };

/// Finds a language by the info string of a code fence or a file extension.
pub(super) fn named(name: &str) -> Option<&'static Language> {
    Some(match name.to_ascii_lowercase().as_str() {
        "rust" | "rs" => &RUST,
        "javascript" | "typescript" | "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => &JAVASCRIPT,
        "go" | "golang" => &GO,
        "c" | "h" | "cpp" | "c++" | "cc" | "cxx" | "hpp" | "cs" | "csharp" | "java" | "kotlin" | "kt" | "kts"
        | "swift" | "scala" | "dart" | "groovy" | "gradle" | "proto" | "zig" => &C,
        "php" => &PHP,
        "python" | "py" | "pyi" => &PYTHON,
        "ruby" | "rb" | "elixir" | "ex" | "exs" | "perl" | "pl" | "r" => &RUBY,
        "bash" | "sh" | "zsh" | "fish" | "shell" | "console" | "powershell" | "ps1" | "makefile" | "make" | "mk"
        | "cmake" => &SHELL,
        "dockerfile" | "containerfile" => &DOCKERFILE,
        "sql" => &SQL,
        "lua" => &LUA,
        "haskell" | "hs" | "elm" | "ocaml" | "ml" => &HASKELL,
        "lisp" | "clojure" | "clj" | "scheme" | "scm" | "el" => &LISP,
        "css" => &CSS,
        "scss" | "sass" | "less" => &SCSS,
        "html" | "htm" | "xml" | "svg" | "vue" | "xhtml" => &MARKUP,
        "json" | "jsonc" | "json5" | "jsonl" => &JSON,
        "yaml" | "yml" | "toml" | "hcl" | "tf" | "properties" | "env" => &CONFIG,
        "ini" | "cfg" | "conf" => &INI,
        _ => return None,
    })
}

/// Returns the part of a path that [`named`] knows: its extension, or the whole file name.
pub(super) fn of_path(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_found_by_file_name() {
        for (path, is_known) in [
            ("src/main.rs", true),
            ("C:\\x\\a.PY", true),
            ("Dockerfile", true),
            ("a/Makefile", true),
            ("notes.txt", false),
            ("", false),
            (".rs/x", false),
        ] {
            assert_eq!(named(of_path(path)).is_some(), is_known, "{path}");
        }
    }
}
