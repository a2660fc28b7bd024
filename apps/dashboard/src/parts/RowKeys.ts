import { useEffect } from "react"
import { isPlainKey } from "./List.tsx"

/** The first link or control of each row of the page's tables, in the order of the page. */
const stops = (): ReadonlyArray<HTMLElement> =>
  [...document.querySelectorAll("main .wide tbody tr")].flatMap(
    (row) => row.querySelector<HTMLElement>("a, button:enabled, input:enabled, select:enabled") ?? []
  )

/**
 * `j` and `k` in tables: the focus goes to the next row that has a link or a control, or to the one before. Lists have these keys of
 * their own, because most of their rows are not drawn.
 */
export const useRowKeys = (): void =>
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "j" && event.key !== "k") return
      if (!isPlainKey(event)) return
      if (document.querySelector("main .list, dialog[open]") !== null) return
      const rows = stops()
      const at = rows.findIndex((stop) => stop.closest("tr")!.contains(document.activeElement))
      const next = rows[Math.min(rows.length - 1, Math.max(0, at + (event.key === "j" ? 1 : -1)))]
      if (next === undefined) return
      event.preventDefault()
      next.focus()
    }
    document.addEventListener("keydown", onKey)
    return () => document.removeEventListener("keydown", onKey)
  }, [])
