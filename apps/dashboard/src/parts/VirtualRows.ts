import { type RefCallback, useCallback, useRef, useState } from "react"
import { flushSync } from "react-dom"
import type { Shown } from "./Pages.ts"

/** The height of each row, and of the head, which stays above the rows that are scrolled under it (px): `lists.css` has both. */
export const rowHeight = 36
const headHeight = 32

/** Rows that are drawn above and below those in sight, so that the reader sees no gap before the next ones are drawn. */
const overscan = 6

const nothingShown: Shown = { first: 0, last: 0 }

/**
 * Which rows of a list to draw: those in sight, and some more. All rows have the same height, so their number costs nothing: a library that measures
 * rows makes an entry for each of them whenever the list grows.
 */
export const useVirtualRows = () => {
  const frame = useRef<HTMLElement | null>(null)
  const [shown, setShown] = useState(nothingShown)
  /** The ref of the element that scrolls. */
  const attach: RefCallback<HTMLElement> = useCallback((list) => {
    if (list === null) return undefined
    const look = () => {
      const { clientHeight, scrollTop } = list
      const first = Math.max(0, Math.floor(scrollTop / rowHeight) - overscan)
      const last = Math.floor((scrollTop + clientHeight) / rowHeight) + overscan
      setShown((now) => (now.first === first && now.last === last ? now : { first, last }))
    }
    // Otherwise rows would be drawn one frame after the list has moved.
    const onScroll = () => flushSync(look)
    const resized = new ResizeObserver(look)
    frame.current = list
    look()
    list.addEventListener("scroll", onScroll, { passive: true })
    resized.observe(list)
    return () => {
      frame.current = null
      list.removeEventListener("scroll", onScroll)
      resized.disconnect()
    }
  }, [])
  /** Scrolls as far as needed until the whole row can be seen. */
  const scrollTo = useCallback((index: number) => {
    const list = frame.current
    if (list === null) return
    const start = index * rowHeight
    const lowest = start + rowHeight + headHeight - list.clientHeight
    list.scrollTop = Math.min(start, Math.max(lowest, list.scrollTop))
  }, [])
  return {
    frame,
    attach,
    scrollTo,
    /** The list may end before the last of these rows. */
    shown
  }
}
