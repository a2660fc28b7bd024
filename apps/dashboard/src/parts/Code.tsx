import { autocompletion, closeBrackets, type CompletionSource } from "@codemirror/autocomplete"
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands"
import { javascript, javascriptLanguage } from "@codemirror/lang-javascript"
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language"
import { EditorState, StateEffect, StateField } from "@codemirror/state"
import {
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  hoverTooltip,
  keymap,
  lineNumbers,
  type Tooltip
} from "@codemirror/view"
import { tags } from "@lezer/highlight"
import { type RefObject, useEffect, useRef } from "react"

/** Colors of the page's style sheet, so that both themes have them. */
const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--ground)", fontSize: "13px", maxHeight: "60vh" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", minHeight: "220px" },
  ".cm-scroller": { fontFamily: "var(--mono)" },
  ".cm-gutters": { color: "var(--muted)", backgroundColor: "var(--raised)", border: "0" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selected)"
  },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selected)" },
  ".cm-tooltip": { color: "var(--text)", backgroundColor: "var(--raised)", border: "1px solid var(--line)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    color: "var(--on-accent)",
    backgroundColor: "var(--accent)"
  },
  ".cm-completionDetail": { color: "inherit", fontStyle: "normal" },
  ".cm-tooltip.cm-completionInfo, .cm-tooltip-hover": { padding: "6px 10px", maxWidth: "320px" },
  ".cm-fault": { backgroundColor: "var(--bad-ground)" }
})

const colors = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--wait)" },
  { tag: tags.comment, color: "var(--muted)" }
])

const faultyLine = Decoration.line({ class: "cm-fault" })

const markFault = StateEffect.define<number | null>()

/** The marked line, until it is changed or another line is marked. */
const faults = StateField.define({
  create: () => Decoration.none,
  update: (marked, { docChanged, effects, state }) => {
    const effect = effects.find((one) => one.is(markFault))
    if (effect === undefined) return docChanged ? Decoration.none : marked
    const line = effect.value
    return line === null || line < 1 || line > state.doc.lines
      ? Decoration.none
      : Decoration.set([faultyLine.range(state.doc.line(line).from)])
  },
  provide: (field) => EditorView.decorations.from(field)
})

/** The name with its dots around a place in a line: of `request.headers["a"]` it is `request.headers`. */
const nameAt = (text: string, at: number): { readonly from: number; readonly name: string } | null => {
  for (const { 0: found, index } of text.slice(0, 2_000).matchAll(/[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*/g)) {
    if (index > at || index + found.length < at) continue
    const rest = found.indexOf(".", at - index)
    return { from: index, name: rest === -1 ? found : found.slice(0, rest) }
  }
  return null
}

const tooltipAt = (view: EditorView, at: number, hint: (name: string) => string | null): Tooltip | null => {
  const line = view.state.doc.lineAt(at)
  const found = nameAt(line.text, at - line.from)
  const text = found === null ? null : hint(found.name)
  return found === null || text === null
    ? null
    : {
        pos: line.from + found.from,
        create: () => ({ dom: Object.assign(document.createElement("div"), { textContent: text }) })
      }
}

/** The functions that a page can call on a visible editor. */
export interface CodeHandle {
  readonly goTo: (line: number) => void
}

/**
 * An editor for JavaScript. It lives in a shadow root: there its styles are objects and not elements, which the page's policy would
 * refuse. Tab leaves it.
 */
export const Code = ({
  change,
  complete,
  fault,
  handle,
  hint,
  initial,
  label
}: {
  readonly label: string
  readonly initial: string
  readonly change: (code: string) => void
  /** Read once. */
  readonly complete: CompletionSource
  /** Returns the description of the name under the pointer, for example `request.headers`. Null: the name is unknown. */
  readonly hint: (name: string) => string | null
  /** The line that is marked. */
  readonly fault: number | null
  readonly handle: RefObject<CodeHandle | null>
}) => {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const latest = useRef({ change, complete, hint, initial, label })
  latest.current = { ...latest.current, change, hint }
  useEffect(() => {
    const { complete, initial, label } = latest.current
    const place = host.current!
    const root = place.shadowRoot ?? place.attachShadow({ mode: "open" })
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: initial,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          highlightActiveLine(),
          javascript(),
          javascriptLanguage.data.of({ autocomplete: complete }),
          autocompletion({ icons: false }),
          hoverTooltip((shown, at) => tooltipAt(shown, at, latest.current.hint)),
          syntaxHighlighting(colors),
          look,
          keymap.of([...defaultKeymap, ...historyKeymap]),
          EditorView.contentAttributes.of({ "aria-label": label }),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (docChanged) latest.current.change(state.doc.toString())
          }),
          faults
        ]
      })
    })
    view.current = editor
    handle.current = {
      goTo: (line) => {
        const { from } = editor.state.doc.line(Math.min(Math.max(1, line), editor.state.doc.lines))
        editor.dispatch({ selection: { anchor: from }, scrollIntoView: true })
        editor.focus()
      }
    }
    return () => {
      editor.destroy()
      handle.current = null
    }
  }, [handle])
  useEffect(() => {
    view.current?.dispatch({ effects: markFault.of(fault) })
  }, [fault])
  return <div ref={host} className="code" />
}
