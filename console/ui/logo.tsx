export const Logo = () => (
  <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" />
    <path d="M16 6.5l8 4.6v9.8l-8 4.6-8-4.6v-9.8z" />
    <circle cx="16" cy="16" r="3.2" />
  </svg>
)
