"""Chat messages and Responses of OpenAI."""
