use proptest::prelude::*;

use super::*;
use crate::out::written;

fn page(text: &str) -> String {
    written(|out| markdown(out, text))
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(page(text), format!("<div class=\"md\">{expected}</div>"));
}

#[test]
fn blocks_become_elements() {
    insta::assert_snapshot!(page(
        "# One *two*\n\ntext\nmore  \nend\n\n1. a\n2. b\n   - [x] c\n\n> quote\n\n| L | R |\n|---|--:|\n| `x` | 1 |\n\n```rust\nfn f() {}\n```\n\n---\n~~gone~~"
    ), @r#"
    <div class="md"><h3 class="h1">One <em>two</em></h3>
    <p>text
    more<br>end</p>
    <ol start="1"><li>a</li>
    <li>b<ul><li><span class="task">☑</span> c</li>
    </ul>
    </li>
    </ol>
    <blockquote><p>quote</p>
    </blockquote>
    <div class="table"><table><thead><tr><th>L</th><th class="right">R</th></tr></thead>
    <tr><td><code>x</code></td><td class="right">1</td></tr>
    </table></div>
    <pre><code title="rust"><span class="sk">fn</span> <span class="sf">f</span>() {}
    </code></pre>
    <hr><p><del>gone</del></p>
    </div>
    "#);
}

#[test]
fn html_is_shown_as_text() {
    check("a <b onclick=x>c</b>", "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>\n");
    check("<script>alert(1)</script>\n", "<p class=\"raw\">&lt;script&gt;alert(1)&lt;/script&gt;\n</p>\n");
    check("```\"><script>\nx\n```", "<pre><code title=\"&quot;&gt;&lt;script&gt;\">x\n</code></pre>\n");
}

#[test]
fn links_lead_to_the_web_or_nowhere() {
    let link = |to: &str, text: &str| {
        format!("<p><a rel=\"noopener noreferrer nofollow\" target=\"_blank\" href=\"{to}\">{text}</a></p>\n")
    };
    let none = |to: &str, text: &str| format!("<p><span class=\"link\" title=\"{to}\">{text}</span></p>\n");
    check("[a](HTTPS://x.y/?a=1&b=2)", &link("HTTPS://x.y/?a=1&amp;b=2", "a"));
    check("<me@x.y>", &link("mailto:me@x.y", "me@x.y"));
    check("[a](javascript:alert(1))", &none("javascript:alert(1)", "a"));
    check("[a](<java\tscript:x>)", &none("java\tscript:x", "a"));
    check("[a](data:text/html,x)", &none("data:text/html,x", "a"));
    check("[a](file:///etc/passwd)", &none("file:///etc/passwd", "a"));
    check("[a](//x.y)", &none("//x.y", "a"));
    check("[a](<https://x/\" onload=\"y>)", &link("https://x/&quot; onload=&quot;y", "a"));
    check("![p](https://x.y/p.png)", &link("https://x.y/p.png", "picture: p"));
    check("![p](vbscript:x)", &none("vbscript:x", "picture: p"));
    check("![p](data:image/svg+xml;base64,PHN2Zz4=)", &none("data:image/svg+xml;base64,PHN2Zz4=", "picture: p"));
}

#[test]
fn addresses_in_text_become_links() {
    for (text, address) in [
        ("https://a.b/c_d_(e). x", "https://a.b/c_d_(e)"),
        ("http://a.b) x", "http://a.b"),
        ("https://a\"b", "https://a"),
        ("https://", ""),
        ("httpx", ""),
    ] {
        assert_eq!(super::address(text), address);
    }
    let page = page("see http and (https://a.b/x_y_z), **https://c.d**");
    assert!(page.contains("see http and (<a ") && page.contains(">https://a.b/x_y_z</a>)"), "{page}");
    assert!(page.contains("<strong><a ") && page.contains(">https://c.d</a></strong>"), "{page}");
}

#[test]
fn deeply_nested_and_malformed_texts_terminate() {
    let n = 20_000;
    for text in [
        ">".repeat(n),
        "- ".repeat(n),
        "[".repeat(n),
        "![".repeat(n),
        "*a_ ".repeat(n),
        "**a ".repeat(n),
        "`a``".repeat(n),
        "<!--".repeat(n),
        "[a](".repeat(n),
        "|a".repeat(n),
        "a\n".repeat(n),
        "&#".repeat(n),
        "http://".repeat(n),
        (0..200).map(|n| format!("{}- a\n", " ".repeat(n))).collect(),
    ] {
        let page = page(&text);
        assert!(page.matches("<blockquote").count() <= MAX_DEPTH && page.matches("<ul").count() <= 200);
    }
    assert!(page(&"x".repeat(MAX_BYTES + 1)).starts_with("<pre class=\"plain\">xxx"));
}

proptest! {
    #[test]
    fn every_element_is_closed_and_none_comes_from_the_text(text in "[a<>\"'&*_`#|!\\[\\]():/~\n -]{0,80}|[\\PC\n]{0,40}") {
        let page = page(&text);
        let mut open = Vec::new();
        for tag in page.split('<').skip(1) {
            let name = tag.split([' ', '>']).next().unwrap();
            match name.strip_prefix('/') {
                _ if matches!(name, "br" | "hr") => {}
                Some(name) => prop_assert_eq!(open.pop(), Some(name), "{}", page),
                None => {
                    let known = ["div", "p", "h3", "h4", "h5", "h6", "blockquote", "pre", "code", "span", "ul", "ol", "li", "table",
                        "thead", "tr", "th", "td", "em", "strong", "del", "a"];
                    prop_assert!(known.contains(&name), "{}", page);
                    open.push(name);
                }
            }
        }
        prop_assert!(open.is_empty(), "{}", page);
    }
}
