/** What a link has put behind `#`. It is dropped from the address before anything is requested. */
export const fragment: {
  token?: string
  u?: string
  e?: string
  to?: string
  [key: string]: string | undefined
} = Object.fromEntries(new URLSearchParams(location.hash.slice(1)))

/** What a provider has put into the query of the address it led back to; it is dropped as well. */
export const returned = location.pathname.startsWith('/admin/callback/') ? location.search.slice(1) : ''

if (returned || location.hash.includes('='))
  history.replaceState(history.state, '', location.pathname + (returned ? '' : location.search))

// Another link, opened where this page is: the browser keeps the page, which has read the first one only.
addEventListener('hashchange', () => location.hash.includes('=') && location.reload())
