try {
  const chosen = localStorage.getItem('cellkeep.theme')
  if (chosen) document.documentElement.dataset.theme = chosen
} catch {}
