import { useRole } from "../session.ts"

/** Tells members what only an owner may do, where they look for it. Owners see nothing. */
export const OnlyOwners = ({ may }: { readonly may: string }) =>
  useRole().mayOwn ? null : <p className="muted">Only an owner of the team can {may}.</p>
