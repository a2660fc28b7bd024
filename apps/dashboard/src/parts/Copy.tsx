import { useState } from "react"

/** Copies a text; says so for a moment, and also when the browser does not allow it. */
export const Copy = ({ label = "Copy", text }: { readonly text: string; readonly label?: string }) => {
  const [said, setSaid] = useState<string | null>(null)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setSaid("Copied")
    } catch {
      setSaid("Not allowed by the browser")
    }
    setTimeout(() => setSaid(null), 1_500)
  }
  return (
    <button type="button" className="link" onClick={() => void copy()}>
      {said ?? label}
    </button>
  )
}
