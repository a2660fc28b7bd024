import { useState } from "react"

/** Copies a text; says so for a moment. */
export const Copy = ({ label = "Copy", text }: { readonly text: string; readonly label?: string }) => {
  const [done, setDone] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setDone(true)
    setTimeout(() => setDone(false), 1_500)
  }
  return (
    <button type="button" className="link" onClick={() => void copy()}>
      {done ? "Copied" : label}
    </button>
  )
}
