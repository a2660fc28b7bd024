import { type FormEvent } from "react"
import { useSession } from "../session.ts"
import { type Search, useFilters } from "./Filters.tsx"
import { useKept } from "./Kept.ts"
import { Menu } from "./Menu.tsx"

interface View {
  readonly name: string
  readonly search: Search
}

const maxViews = 30
const longestName = 60

const isViews = (value: unknown): value is ReadonlyArray<View> =>
  Array.isArray(value) &&
  value.every(
    (one: Partial<View> | null) =>
      typeof one?.name === "string" &&
      typeof one.search === "object" &&
      Object.values(one.search).every((text) => typeof text === "string")
  )

const none: ReadonlyArray<View> = []

/** Filters with a name, for a page and a team. This browser keeps them; a view for others is the page's URL. */
export const Views = ({ page }: { readonly page: string }) => {
  const { team } = useSession()
  const { change, search } = useFilters()
  const [views, setViews] = useKept(`views ${team} ${page}`, isViews, none)
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const given = new FormData(event.currentTarget).get("name")
    const name = typeof given === "string" ? given.trim() : ""
    if (name === "") return
    setViews([...views.filter((one) => one.name !== name), { name, search }].slice(-maxViews))
    event.currentTarget.reset()
  }
  const show = (view: View) => {
    const nothing = Object.fromEntries(Object.keys(search).map((name) => [name, ""]))
    change({ ...nothing, ...view.search })
  }
  return (
    <Menu label="Views">
      {views.length === 0 ? <p className="muted">No view is saved in this browser.</p> : null}
      <ul className="plain" aria-label="Saved views">
        {views.map((view) => (
          <li key={view.name} className="bar">
            <button type="button" className="link" onClick={() => show(view)}>
              <bdi>{view.name}</bdi>
            </button>
            <button
              type="button"
              className="link"
              aria-label={`Forget the view ${view.name}`}
              onClick={() => setViews(views.filter((one) => one !== view))}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      <form onSubmit={save} className="joined">
        <input name="name" aria-label="Name of the view" placeholder="These filters as…" maxLength={longestName} />
        <button type="submit">Save</button>
      </form>
    </Menu>
  )
}
