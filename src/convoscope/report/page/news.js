// Hands the news to the page that holds this one in a frame. From a server, only to a page of the same.
if (parent !== window) parent.postMessage(JSON.parse(document.getElementById("news").textContent), location.origin === "null" || location.protocol === "file:" ? "*" : location.origin);
