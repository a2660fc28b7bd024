import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type KeyboardEvent, useEffect, useRef, useState } from "react"
import { useMay } from "./may.ts"
import { forms, groups } from "./menu.ts"
import { isKnownId, placeOf } from "./pages/paths.ts"
import { useSession } from "./session.ts"

interface Command {
  readonly id: string
  readonly label: string
  readonly kind: string
  readonly open: () => Promise<string | null>
}

const maxShown = 12

const kinds = ["sources", "destinations", "connections", "transformations", "workflows"] as const

const menu = groups.flatMap((group) => group.pages)

/** The pages of the menu, and the forms whose calls the caller may make. */
const usePages = (): ReadonlyArray<Command> => {
  const may = useMay()
  return [...menu, ...forms.filter(([, , call]) => may(call))].map(([to, label]) => ({
    id: to,
    label,
    kind: "Page",
    open: () => Promise.resolve(to)
  }))
}

/** All resources by their names, read when the palette is opened for the first time. */
const useResources = (): ReadonlyArray<Command> => {
  const { client, team } = useSession()
  const { data } = useQuery({
    queryKey: ["palette", team],
    queryFn: async () => {
      const lists = kinds.map(async (kind) => {
        const { models } = await client.get(`/${kind}`, { params: { query: { limit: 255 } } })
        return models.map(({ id, name }): Command => ({
          id,
          label: name,
          kind: kind.slice(0, -1),
          open: () => Promise.resolve(`/${kind}/${id}`)
        }))
      })
      return (await Promise.all(lists)).flat()
    },
    staleTime: 30_000
  })
  return data ?? []
}

/** Ranks a text that contains all words. A text that begins with the first word ranks higher. */
const rank = (text: string, words: ReadonlyArray<string>): number => {
  const lower = text.toLowerCase()
  if (!words.every((word) => lower.includes(word))) return 0
  return lower.startsWith(words[0] ?? "") ? 2 : 1
}

/** Goes to a page, a resource by its name, or any record by its id. Arrow keys choose, Enter opens, Escape closes. */
export const Palette = ({ close }: { readonly close: () => void }) => {
  const { client } = useSession()
  const navigate = useNavigate()
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState("")
  const [at, setAt] = useState(0)
  const [isUnknown, setUnknown] = useState(false)
  const pages = usePages()
  const resources = useResources()
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  const wanted = text.trim()
  const words = wanted.toLowerCase().split(/\s+/)
  const found = [...pages, ...resources]
    .map((command) => ({ command, points: rank(command.label, words) }))
    .filter(({ points }) => points > 0)
    .toSorted((a, b) => b.points - a.points)
    .slice(0, maxShown)
    .map(({ command }) => command)
  const commands: ReadonlyArray<Command> = isKnownId(wanted)
    ? [{ id: wanted, label: wanted, kind: "Id", open: () => placeOf(client, wanted) }]
    : found
  const run = async (command: Command | undefined) => {
    const to = (await command?.open()) ?? null
    if (to === null) return setUnknown(true)
    close()
    await navigate({ to })
  }
  const onKey = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by !== undefined) {
      event.preventDefault()
      setAt(Math.min(commands.length - 1, Math.max(0, at + by)))
    }
    if (event.key === "Enter") {
      event.preventDefault()
      void run(commands[at])
    }
  }
  return (
    <dialog ref={dialog} className="palette" aria-label="Go to" onClose={close}>
      <input
        role="combobox"
        aria-label="Page, name or id"
        aria-expanded
        aria-controls="commands"
        aria-activedescendant={commands[at] === undefined ? undefined : `command-${at}`}
        placeholder="A page, a name, or an id"
        value={text}
        onChange={({ target }) => {
          setText(target.value)
          setAt(0)
          setUnknown(false)
        }}
        onKeyDown={onKey}
      />
      <div id="commands" role="listbox" aria-label="Found">
        {commands.map((command, index) => (
          <div
            key={command.id}
            id={`command-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => void run(command)}
          >
            <bdi>{command.label}</bdi> <span className="muted">{command.kind}</span>
          </div>
        ))}
      </div>
      {commands.length === 0 || isUnknown ? (
        <p className="muted" role="status">
          Nothing has this name or id.
        </p>
      ) : null}
    </dialog>
  )
}

const keys = [
  ["Ctrl K or ⌘ K", "Goes to a page, a resource by its name, or a record by its id"],
  ["/", "Goes to the field for an id"],
  ["j, k", "Go to the next or the last row of a list or a table"],
  ["Enter", "Opens the selected row"],
  ["?", "Shows these keys"],
  ["Escape", "Closes what is open above the page"]
] as const

export const Keys = ({ close }: { readonly close: () => void }) => {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog ref={dialog} className="palette" aria-label="Keys" onClose={close}>
      <h2>Keys</h2>
      <table>
        <tbody>
          {keys.map(([key, what]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="muted">An id that you paste anywhere on a page opens its record.</p>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  )
}
