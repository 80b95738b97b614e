import { defineConfig } from 'vitepress'

/** The pages of `docs/` as a static site with search. A link that leads nowhere fails the build. */
export default defineConfig({
  title: 'Cellkeep',
  description: 'Identity, access and content in one service.',
  srcDir: 'pages',
  outDir: './dist',
  cleanUrls: true,
  rewrites: { 'README.md': 'index.md' },
  // `pages` links to docs/; its pages have to find what is installed here.
  vite: { resolve: { preserveSymlinks: true } },
  lastUpdated: false,
  // Links out of docs/ lead to files of the repository, which the site does not hold.
  ignoreDeadLinks: [/^(\.\/)*(\.\.\/)+(examples|CHANGELOG|README|SECURITY|CONTRIBUTING|ARCHITECTURE)/],
  themeConfig: {
    search: { provider: 'local' },
    sidebar: [
      {
        text: 'Begin',
        items: [
          { text: 'Tutorial', link: '/tutorial' },
          { text: 'Concepts', link: '/concepts' },
          { text: 'Authentication', link: '/authentication' },
          { text: 'Signing in', link: '/sign-in' },
          { text: 'How do I …?', link: '/how-to' },
          { text: 'Comparison', link: '/comparison' },
        ],
      },
      {
        text: 'Build',
        items: [
          { text: 'Client', link: '/client' },
          { text: 'Embedding', link: '/embedding' },
          { text: 'Declarations', link: '/declarations' },
          { text: 'Testing', link: '/testing' },
          { text: 'Operator calls', link: '/operator-calls' },
          { text: 'Events in the log', link: '/log-events' },
          { text: 'Methods', link: '/api' },
          { text: 'Reasons', link: '/errors' },
          { text: 'Live connections', link: '/live' },
          { text: 'Audit events', link: '/audit-events' },
          { text: 'Identifiers', link: '/identifiers' },
          { text: 'Importing users', link: '/migrating-users' },
        ],
      },
      {
        text: 'Run',
        items: [
          { text: 'Console', link: '/console' },
          { text: 'Operations', link: '/operations' },
          { text: 'Backup and recovery', link: '/backup' },
          { text: 'Configuration', link: '/configuration' },
          { text: 'Upgrading', link: '/upgrading' },
          { text: 'Troubleshooting', link: '/troubleshooting' },
          { text: 'Findings of the doctor', link: '/doctor' },
          { text: 'Reliability', link: '/reliability' },
          { text: 'Performance', link: '/performance' },
          { text: 'Sizing', link: '/sizing' },
          { text: 'Dependencies', link: '/dependencies' },
          { text: 'ASVS', link: '/security' },
        ],
      },
    ],
  },
})
