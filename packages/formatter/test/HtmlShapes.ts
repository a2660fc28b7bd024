/** HTML that is made to cost more than it weighs: what each shape begins with, what it repeats, and what it ends with. */
export const htmlShapes: Readonly<Record<string, readonly [begin: string, piece: string, end: string]>> = {
  "elements that stand deep": ["", `${"<div>".repeat(99)}x${"</div>".repeat(99)}`, ""],
  "lists that stand deep": ["", `${"<ul><li>".repeat(49)}x${"</li></ul>".repeat(49)}`, ""],
  "paragraphs that have no end": ["", "<p>x", ""],
  "items that have no end": ["<ol>", "<li>x", ""],
  "ends that have no beginning": ["", "</p></b>", ""],
  "paragraphs in quotations": ["<blockquote>".repeat(3), "<p>word", ""],
  "huge addresses": ["", `<a href="${"(<&amp;".repeat(2000)}" title="${'\\"&amp;'.repeat(100)}">x</a> `, ""],
  "a huge text for an image": ['<img src=x alt="', "*[", '">'],
  "elements of many attributes": ["", `<b ${"a=b ".repeat(1000)}>x</b> `, ""],
  "marks beside letters": ["", "x<b>y</b>", ""],
  "emphasis within words": ["", "x<i>y</i>", ""],
  "marks behind marks": ["", "<i>a</i><b>b</b>", ""],
  "marks that would be read as others": ["", "x<b><i>a</i>b<i>c</i></b>", ""],
  "marks around punctuation": ["", `x<b>${"(".repeat(200)}</b>y`, ""],
  "marks in marks": ["", `${"<b><i>".repeat(40)}x${"</i></b>".repeat(40)} `, ""],
  "marks around paragraphs": ["<a href=u><b><i>", "<p>x", ""],
  "links in marks beside letters": ["", "<b>a <a href=u>x</a></b>y", ""],
  entities: ["", "&lt;&amp;", ""],
  "spaces that are kept": ["", "&nbsp; ", "x"],
  "line breaks": ["", "x<br>", ""],
  "what has to be escaped": ["", "_<", ""],
  "tables with spans": ["", "<table><tr><td colspan=9>x<td rowspan=9>y<tr><th>z</table>", ""],
  "backticks in code": ["<code>", "`` ` ", "</code>"],
  "fences in code": ["<pre>", "```\n", "</pre>"],
  "empty lines in code": ["<pre><code>", " \n", "x"]
}

/** HTML of a shape, of at most so many characters. */
export const htmlOf = ([begin, piece, end]: readonly [string, string, string], length: number): string =>
  begin + piece.repeat(Math.floor((length - begin.length - end.length) / piece.length)) + end
