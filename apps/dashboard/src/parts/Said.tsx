import { useLocation } from "@tanstack/react-router"
import { createContext, type ReactNode, use, useEffect, useState } from "react"

/** What a page says about an action. */
interface Said {
  readonly text: string
  readonly tone: "good" | "bad"
}

const SayContext = createContext<(said: Said) => void>(() => {})

/** Says something to the reader that stays until the page is left: what was clicked may be gone by then. */
export const useSay = (): ((said: Said) => void) => use(SayContext)

/** The part of a page with messages, below everything else. Screen readers read them aloud. */
export const Saying = ({ children }: { readonly children: ReactNode }) => {
  const { pathname } = useLocation()
  const [said, setSaid] = useState<Said | null>(null)
  useEffect(() => setSaid(null), [pathname])
  return (
    <SayContext value={setSaid}>
      {children}
      <div className="said" role="status">
        {said === null ? null : (
          <>
            <span className={`badge ${said.tone}`}>{said.text}</span>
            <button type="button" className="link" onClick={() => setSaid(null)}>
              Close
            </button>
          </>
        )}
      </div>
    </SayContext>
  )
}
