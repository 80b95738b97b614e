import { firstCookie, formOf, type SessionCookieOptions } from './cookie.ts'
import { tokenForm } from './secrets.ts'

/** The cookie that ties the steps of a sign-in to one browser. It is no credential. */
export type FlowCookie = {
  issue(token: string): string
  clear(): string
  /** The token in a Cookie header; null without a well-formed one. */
  read(header: string | undefined): string | null
}

const maxAgeSeconds = 600

export function createFlowCookie(options: Pick<SessionCookieOptions, 'secure' | 'hostPrefix'>): FlowCookie {
  const { name, attributes } = formOf('svc_flow', options)
  return {
    issue: (token) => `${name}=${token}; Max-Age=${maxAgeSeconds}; ${attributes}`,
    clear: () => `${name}=; Max-Age=0; ${attributes}`,
    read: (header) => tokenForm.exec(firstCookie(header, name) ?? '')?.[0] ?? null,
  }
}
