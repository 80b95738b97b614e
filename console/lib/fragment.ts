/**
 * The data of a link behind `#`. It is dropped from the address before anything is requested, unless it only says where
 * to go.
 */
export const fragment: {
  token?: string
  u?: string
  e?: string
  to?: string
  [key: string]: string | undefined
} = Object.fromEntries(new URLSearchParams(location.hash.slice(1)))

/** What a provider put into the query of the address it led back to; dropped as well. */
export const returned = location.pathname.startsWith('/admin/callback/') ? location.search.slice(1) : ''

const isPrivate = Object.keys(fragment).some((key) => key !== 'to') && location.hash.includes('=')
if (returned || isPrivate)
  history.replaceState(history.state, '', location.pathname + (returned ? '' : location.search))

// Another link was opened in place of this page: the browser keeps the page, which has only read the first link.
addEventListener('hashchange', () => location.hash.includes('=') && location.reload())
