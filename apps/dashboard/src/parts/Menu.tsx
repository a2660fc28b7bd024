import { type ReactNode, useEffect, useRef } from "react"

/** Parts that are shown below a button, until Escape is pressed or something else is clicked. */
export const Menu = ({ children, label }: { readonly label: string; readonly children: ReactNode }) => {
  const menu = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      const details = menu.current
      if (details?.open !== true) return
      if (event instanceof KeyboardEvent ? event.key !== "Escape" : details.contains(event.target as Node)) return
      details.open = false
      if (event instanceof KeyboardEvent) details.querySelector("summary")?.focus()
    }
    document.addEventListener("pointerdown", close)
    document.addEventListener("keydown", close)
    return () => {
      document.removeEventListener("pointerdown", close)
      document.removeEventListener("keydown", close)
    }
  }, [])
  return (
    <details className="menu" ref={menu}>
      <summary className="button">{label}</summary>
      <div className="menu-parts">{children}</div>
    </details>
  )
}
