import type { ReactNode } from "react"
import { useRole } from "../session.ts"

/** Tells members what only an owner may do, where they look for it. Owners see nothing. */
export const OnlyOwners = ({ may }: { readonly may: string }) =>
  useRole().mayOwn ? null : <p className="muted">Only an owner of the team can {may}.</p>

/** A page that is for owners alone. Members see its title, and who may do what it is for. */
export const ForOwners = ({
  children,
  may,
  title
}: {
  readonly children: ReactNode
  readonly may: string
  readonly title: string
}) =>
  useRole().mayOwn ? (
    children
  ) : (
    <>
      <header>
        <h1>{title}</h1>
      </header>
      <OnlyOwners may={may} />
    </>
  )
