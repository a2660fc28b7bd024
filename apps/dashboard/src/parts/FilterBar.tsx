import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react"
import { type Completion, completionsOf, type Known, longestText, type Value } from "./Completions.ts"
import { useFilters } from "./Filters.tsx"
import { type Kind, useNamesOf } from "./Named.tsx"
import { choicesOf, useDocument } from "./Schema.ts"
import { wordsOf } from "./Status.tsx"

/** A filter of a list. Its values are a text, the names of resources, those that are given, or those of the API's document. */
export interface Filter {
  /** Its name in the URL, and in the API if its values are in the document. */
  readonly name: string
  readonly label: string
  /** Its name in the field (default: its name in the URL, without `_id`). */
  readonly key?: string
  readonly isText?: boolean
  readonly kind?: Kind
  readonly values?: ReadonlyArray<Value>
  /** These values are not read yet. */
  readonly isLoading?: boolean
  /** Values that stand for several ones of the document. */
  readonly more?: ReadonlyArray<string>
  /** It takes a text that is written without a name. */
  readonly isUsual?: boolean
}

/** What the reader sees of a value that the API's document has. */
const wordsOfValue = (value: string): string => ({ true: "Yes", false: "No" })[value] ?? wordsOf(value)

const withWords = (values: ReadonlyArray<string>): ReadonlyArray<Value> =>
  values.map((value) => [value, wordsOfValue(value)])

const usePossible = (path: string, filters: ReadonlyArray<Filter>, isOpen: boolean) => {
  const { search } = useFilters()
  const isDeclared = ({ isText = false, kind, values }: Filter) => isText || kind !== undefined || values !== undefined
  const document = useDocument(isOpen && !filters.every(isDeclared))
  // A page whose filters are not used reads no names for them.
  const shown = filters.filter(({ name }) => isOpen || search[name] !== undefined)
  const names = useNamesOf(shown.flatMap(({ kind }) => kind ?? []))
  const known = filters.map((filter): Known => {
    const { isText = false, isUsual = false, kind, label, more = [], name, values } = filter
    const key = filter.key ?? name.replace(/_id$/, "")
    const possible = isText
      ? null
      : kind === undefined
        ? (values ?? withWords([...more, ...(document.data === undefined ? [] : choicesOf(document.data, path, name))]))
        : [...(names(kind) ?? [])]
    return { name, key, label, values: possible, hasIds: kind !== undefined, isUsual }
  })
  const isNamed = filters.every(({ kind }) => kind === undefined || names(kind) !== undefined)
  const isRead = isNamed && filters.every(({ isLoading }) => isLoading !== true)
  return { known, isLoading: document.isLoading || (isOpen && !isRead) }
}

/** What a chip says of a value. */
const shownOf = ({ hasIds, values }: Known, value: string): string =>
  values === null ? value : (values.find(([one]) => one === value)?.[1] ?? (hasIds ? value : wordsOfValue(value)))

/** The filters in force. Each is removed by a click, or by Backspace or Delete: then the next one has the focus. */
const Chips = ({ filters, toField }: { readonly filters: ReadonlyArray<Known>; readonly toField: () => void }) => {
  const { change, search } = useFilters()
  const list = useRef<HTMLUListElement>(null)
  /** Which chip gets the focus when the one that had it is gone. */
  const next = useRef<number | null>(null)
  const chosen = filters.filter(({ name }) => search[name] !== undefined)
  useEffect(() => {
    if (next.current === null) return
    const chips = list.current?.querySelectorAll<HTMLElement>(".chip") ?? []
    const chip = chips[Math.min(next.current, chips.length - 1)]
    next.current = null
    if (chip === undefined) toField()
    else chip.focus()
  }, [chosen.length, toField])
  if (chosen.length === 0) return null
  const remove = (name: string, at: number) => {
    next.current = at
    change({ [name]: "" })
  }
  return (
    <ul ref={list} className="chips plain" aria-label="Filters in force">
      {chosen.map((filter, at) => {
        const { label, name } = filter
        const words = shownOf(filter, search[name]!)
        return (
          <li key={name}>
            <button
              type="button"
              className="chip"
              aria-label={`Remove the filter ${label}: ${words}`}
              onClick={() => remove(name, at)}
              onKeyDown={(event) => {
                if (event.key !== "Backspace" && event.key !== "Delete") return
                event.preventDefault()
                remove(name, at)
              }}
            >
              {label}: <bdi>{words}</bdi> <span aria-hidden>×</span>
            </button>
          </li>
        )
      })}
      <li>
        <button
          type="button"
          className="link"
          onClick={() => {
            next.current = 0
            change(Object.fromEntries(chosen.map(({ name }) => [name, ""])))
          }}
        >
          Clear all
        </button>
      </li>
    </ul>
  )
}

/**
 * The filters of a list: a chip for each in force, and one field that adds them. The field offers all of them when it is empty, and completes
 * names and values. The URL is the state.
 */
export const FilterBar = ({ of, path }: { readonly of: ReadonlyArray<Filter>; readonly path: string }) => {
  const { set } = useFilters()
  const options = useId()
  const field = useRef<HTMLInputElement>(null)
  const [toField] = useState(() => () => field.current?.focus())
  const [text, setText] = useState("")
  const [isOpen, setOpen] = useState(false)
  const [at, setAt] = useState(-1)
  /** Enter was pressed before the values were read. */
  const [isEntered, setEntered] = useState(false)
  const { isLoading, known } = usePossible(path, of, isOpen)
  const found = completionsOf(text, known)

  const write = (next: string) => {
    setText(next)
    setAt(next.trim() === "" ? -1 : 0)
    setOpen(true)
    setEntered(false)
  }
  const take = (completion: Completion | undefined) => {
    if (completion === undefined) return
    if (completion.does === "write") return write(completion.text)
    write("")
    setOpen(false)
    set(completion.name, completion.value)
  }
  useEffect(() => {
    if (!isEntered || isLoading) return
    setEntered(false)
    take(found[Math.max(0, at)])
  })
  const onKey = (event: KeyboardEvent<HTMLInputElement>) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by !== undefined) {
      event.preventDefault()
      setOpen(true)
      setAt(Math.min(found.length - 1, Math.max(0, at + by)))
    }
    if (event.key === "Enter") {
      event.preventDefault()
      if (text.trim() !== "" || at >= 0) setEntered(true)
    }
    if (event.key === "Escape") setOpen(false)
    if (event.key === "Backspace" && text === "") {
      const chips = event.currentTarget.closest(".filter-bar")?.querySelectorAll<HTMLElement>(".chip") ?? []
      chips[chips.length - 1]?.focus()
    }
  }
  return (
    <div className="filter-bar">
      <Chips filters={known} toField={toField} />
      <div className="adding">
        <input
          ref={field}
          role="combobox"
          aria-label="Add a filter"
          aria-autocomplete="list"
          aria-expanded={isOpen}
          aria-controls={options}
          aria-activedescendant={isOpen && found[at] !== undefined ? `${options}-${at}` : undefined}
          placeholder="Add a filter"
          autoComplete="off"
          spellCheck={false}
          maxLength={longestText}
          value={text}
          onChange={({ target }) => write(target.value)}
          onClick={() => setOpen(true)}
          onBlur={() => setOpen(false)}
          onKeyDown={onKey}
        />
        <div className="completions" hidden={!isOpen}>
          <div id={options} role="listbox" aria-label="Filters">
            {found.map((completion, index) => (
              <div
                key={completion.label}
                id={`${options}-${index}`}
                role="option"
                aria-selected={index === at}
                // The field keeps the focus.
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => take(completion)}
              >
                <bdi>{completion.label}</bdi>
              </div>
            ))}
          </div>
          {found.length > 0 ? null : (
            <p className="muted" role="status">
              {isLoading
                ? "Loading…"
                : text.trim().endsWith(":")
                  ? "Write a value."
                  : "No filter has this name or value."}
            </p>
          )}
        </div>
      </div>
    </div>
  )
}
