import { isTexts, useKept } from "./Kept.ts"
import type { Column } from "./List.tsx"
import { Menu } from "./Menu.tsx"

/** The columns of a list that the reader wants to see, and the menu that changes them. This browser keeps the choice. */
export const useColumns = <Model,>(page: string, all: ReadonlyArray<Column<Model>>) => {
  const usual = all.filter(({ isExtra = false }) => !isExtra).map(({ title }) => title)
  const [titles, setTitles] = useKept(`columns ${page}`, isTexts, usual)
  const chosen = all.filter(({ title }) => titles.includes(title))
  // A list without columns, or whose columns have other names now, has the usual ones.
  const columns = chosen.length === 0 ? all.filter(({ title }) => usual.includes(title)) : chosen
  const shown = columns.map(({ title }) => title)
  const menu = (
    <Menu label="Columns">
      {all.map(({ title }) => (
        <label key={title}>
          <input
            type="checkbox"
            aria-label={`Column ${title}`}
            checked={shown.includes(title)}
            disabled={shown.length === 1 && shown[0] === title}
            onChange={({ target }) =>
              setTitles(target.checked ? [...shown, title] : shown.filter((one) => one !== title))
            }
          />{" "}
          {title}
        </label>
      ))}
      <button type="button" onClick={() => setTitles(usual)}>
        The usual ones
      </button>
    </Menu>
  )
  return { columns, menu }
}
